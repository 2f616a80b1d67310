-- entry: look
-- Sites where tasks of a queue are ready, and their clocks; those first that keep it busy for longest.
CREATE FUNCTION read_sites_of_queue(_now bigint, _most int, _queue text)
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
    SELECT s.key::text, pace_of(s.delay, s.crawl_delay, s.pace), b.waiting, coalesce(k.live, 0)::bigint,
           greatest(CASE WHEN s.site_delay > 0 THEN s.begun_at + s.site_delay ELSE 0 END, s.blocked_until, k.free_at),
           coalesce(k.penalty, 0), s.site_delay, s.blocked_until, s.probing AND s.blocked_until <= _now, nullif(s.cause, '')
    FROM (
        SELECT w.site, w.waiting, w.waiting * greatest(s.delay, s.crawl_delay, s.pace, s.site_delay) AS busy
        FROM (
            SELECT v.site, sum(v.ready)::bigint AS waiting
            FROM visit AS v
            WHERE v.line IN (SELECT l.id FROM line AS l WHERE l.queue = _queue) AND v.ready > 0
            GROUP BY v.site
        ) AS w
        JOIN site AS s ON s.id = w.site
        ORDER BY 3 DESC, 2 DESC
        LIMIT _most
    ) AS b
    JOIN site AS s ON s.id = b.site
    LEFT JOIN LATERAL (
        SELECT min(slot_free_at(k.begun_at, pace_of(s.delay, s.crawl_delay, s.pace), k.blocked_until)) AS free_at,
               max(remembered_penalty(k.penalty, k.limited_until, _now)) AS penalty, sum(k.live) AS live
        FROM slot AS k
        WHERE k.site = s.id
    ) AS k ON true
    ORDER BY b.busy DESC, b.waiting DESC;
END
$$;
