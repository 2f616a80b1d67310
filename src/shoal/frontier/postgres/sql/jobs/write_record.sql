-- entry: verb
-- Keep a document; replaces.
CREATE FUNCTION write_record(_kind text, _name text, _body bytea) RETURNS void
LANGUAGE sql
AS $$
INSERT INTO record (kind, name, body) VALUES (_kind, _name, _body)
ON CONFLICT (kind, name) DO UPDATE SET body = excluded.body
$$;
