-- entry: look
-- The values under these keys; those whose time is over are not there.
CREATE FUNCTION read_cache(_now bigint, _key text[]) RETURNS TABLE (key text, value bytea)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT c.key, c.value FROM (SELECT DISTINCT u.key FROM unnest(_key) AS u (key)) AS u
    CROSS JOIN LATERAL (SELECT * FROM cache WHERE cache.key = u.key OFFSET 0) AS c
    WHERE c.expires_at > moment(_now);
END
$$;
