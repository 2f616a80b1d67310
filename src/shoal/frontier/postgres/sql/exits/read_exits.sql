-- entry: look
-- The book of exits, with what is out by each and the sites that it may not visit now.
CREATE FUNCTION read_exits(_now bigint)
RETURNS TABLE (
    name text, address text, pools text[], cap int, failures int, quarantined_until bigint, live bigint, bans text
)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
BEGIN
    _now := moment(_now);
    RETURN QUERY
    WITH leased AS MATERIALIZED (
        SELECT t.exit, count(*) AS live FROM task AS t WHERE t.state = 2 AND t.lease_until > 0 GROUP BY t.exit
    )
    SELECT b.name::text, b.address, b.pools, b.cap, b.failures, greatest(b.quarantined_until, b.banned_until), coalesce(l.live, 0), (
        SELECT coalesce(json_agg(json_build_array(k.key, k.blocked_until) ORDER BY k.blocked_until), '[]')::text
        FROM (
            SELECT s.key, k.blocked_until FROM slot AS k JOIN site AS s ON s.id = k.site
            WHERE k.exit = b.name AND k.cause IS NOT NULL AND k.blocked_until > _now
            ORDER BY k.blocked_until
            LIMIT 100
        ) AS k)
    FROM exit_book AS b
    LEFT JOIN leased AS l ON l.exit = b.name
    ORDER BY b.name;
END
$$;
