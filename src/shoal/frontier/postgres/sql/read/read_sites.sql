-- entry: look
-- Sites with work and their clocks, most waiting tasks first; or one site, whether it has work or not.
CREATE FUNCTION read_sites(_now bigint, _most int, _key text)
RETURNS TABLE (
    site text, delay bigint, waiting bigint, leased bigint, next_at bigint, penalty bigint, site_delay bigint,
    blocked_until bigint, probing boolean, cause text
)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
BEGIN
    _now := moment(_now);
    RETURN QUERY
    SELECT s.key::text, pace_of(s.delay, s.crawl_delay, s.pace), b.waiting, b.leased,
           greatest(CASE WHEN s.site_delay > 0 THEN s.begun_at + s.site_delay ELSE 0 END, s.blocked_until, k.free_at),
           coalesce(k.penalty, 0), s.site_delay, s.blocked_until, s.probing AND s.blocked_until <= _now, nullif(s.cause, '')
    FROM (
        SELECT w.site, sum(w.waiting)::bigint AS waiting, sum(w.leased)::bigint AS leased
        FROM (
            SELECT v.site, v.ready AS waiting, 0 AS leased FROM visit AS v WHERE _key IS NULL
            UNION ALL
            SELECT t.site, 1, 0 FROM task AS t WHERE _key IS NULL AND t.state IN (1, 3)
            UNION ALL
            SELECT k.site, 0, k.live FROM slot AS k WHERE _key IS NULL AND k.live > 0
            UNION ALL
            SELECT s.id, (SELECT coalesce(sum(v.ready), 0) FROM visit AS v WHERE v.site = s.id)
                         + (SELECT count(*) FROM task AS t WHERE t.state IN (1, 3) AND t.site = s.id),
                   (SELECT coalesce(sum(k.live), 0) FROM slot AS k WHERE k.site = s.id)
            FROM site AS s
            WHERE s.key = _key
        ) AS w
        GROUP BY w.site
        ORDER BY 2 DESC
        LIMIT _most
    ) AS b
    JOIN site AS s ON s.id = b.site
    LEFT JOIN LATERAL (
        SELECT min(slot_free_at(k.begun_at, pace_of(s.delay, s.crawl_delay, s.pace), k.blocked_until)) AS free_at,
               max(remembered_penalty(k.penalty, k.limited_until, _now)) AS penalty
        FROM slot AS k
        WHERE k.site = s.id
    ) AS k ON true
    ORDER BY b.waiting DESC;
END
$$;
