-- entry: look
-- All documents of a kind.
CREATE FUNCTION read_records(_kind text) RETURNS TABLE (name text, body bytea)
LANGUAGE sql STABLE
AS $$ SELECT r.name, r.body FROM record AS r WHERE r.kind = _kind $$;
