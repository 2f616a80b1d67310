-- Keep values under their keys for a while; replaces. Of two under one key, the last. Those without time let go of that
-- value. In the order of the keys, so that two who write the same ones do not wait for each other.
CREATE FUNCTION write_entries(_now bigint, _key text[], _value bytea[], _ttl bigint[]) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    INSERT INTO cache (key, value, expires_at)
    SELECT DISTINCT ON (u.key) u.key, u.value, _now + u.ttl
    FROM unnest(_key, _value, _ttl) WITH ORDINALITY AS u (key, value, ttl, nth)
    WHERE u.ttl > 0
    ORDER BY u.key, u.nth DESC
    ON CONFLICT (key) DO UPDATE SET value = excluded.value, expires_at = excluded.expires_at;
    IF 0 = ANY (_ttl) THEN
        DELETE FROM cache
        USING (SELECT u.key, u.value FROM unnest(_key, _value, _ttl) AS u (key, value, ttl) WHERE u.ttl = 0
               ORDER BY u.key) AS gone
        WHERE cache.key = gone.key AND cache.value = gone.value;
    END IF;
END
$$;
