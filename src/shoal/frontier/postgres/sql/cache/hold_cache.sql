-- entry: verb
-- The verb `hold` of the cache: keep values where nothing else is, and answer the keys where that was so.
CREATE FUNCTION hold_cache(_now bigint, _key text[], _value bytea[], _ttl bigint[]) RETURNS TABLE (key text)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
BEGIN
    _now := moment(_now);
    RETURN QUERY
    INSERT INTO cache (key, value, expires_at)
    SELECT u.key, u.value, _now + u.ttl FROM unnest(_key, _value, _ttl) AS u (key, value, ttl) ORDER BY u.key
    ON CONFLICT (key) DO UPDATE SET value = excluded.value, expires_at = excluded.expires_at
    WHERE cache.expires_at <= _now OR cache.value = excluded.value
    RETURNING cache.key;
END
$$;
