-- Sites with work and their clocks, most waiting tasks first.
CREATE FUNCTION read_sites(_most int)
RETURNS TABLE (site text, delay bigint, waiting bigint, leased bigint, next_at bigint, penalty int)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT s.key::text, greatest(s.delay, s.crawl_delay), b.waiting, b.leased,
           greatest(CASE WHEN s.site_delay > 0 THEN s.begun_at + s.site_delay ELSE 0 END, k.free_at, 0),
           coalesce(k.penalty, 0)
    FROM (
        SELECT w.site, sum(w.waiting)::bigint AS waiting, sum(w.leased)::bigint AS leased
        FROM (
            SELECT v.site, v.ready AS waiting, 0 AS leased FROM visit AS v
            UNION ALL
            SELECT t.site, 1, 0 FROM task AS t WHERE t.state IN (1, 3)
            UNION ALL
            SELECT k.site, 0, k.live FROM slot AS k WHERE k.live > 0
        ) AS w
        GROUP BY w.site
        ORDER BY 2 DESC
        LIMIT _most
    ) AS b
    JOIN site AS s ON s.id = b.site
    LEFT JOIN LATERAL (
        SELECT min(greatest(k.begun_at + greatest(s.delay, s.crawl_delay), k.blocked_until)) AS free_at,
               max(k.penalty) AS penalty
        FROM slot AS k
        WHERE k.site = s.id
    ) AS k ON true
    ORDER BY b.waiting DESC;
END
$$;
