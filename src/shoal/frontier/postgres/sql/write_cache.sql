-- Keep a value for a while; replaces.
CREATE FUNCTION write_cache(_now bigint, _key text, _value bytea, _ttl bigint) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    INSERT INTO cache (key, value, expires_at) VALUES (_key, _value, moment(_now) + _ttl)
    ON CONFLICT (key) DO UPDATE SET value = excluded.value, expires_at = excluded.expires_at;
END
$$;
