-- Slots of these sites were just limited, which has been written down. Where several of a site were, or where one was whose
-- site has not recovered yet (_again), the whole site waits, and one request goes first afterwards.
CREATE FUNCTION limit_whole_sites(_now bigint, _site int[], _again boolean[], _cause text[]) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    UPDATE site
    SET blocked_until = greatest(site.blocked_until, w.until), probing = true, probe = 0, cause = w.cause
    FROM (
        SELECT u.site, u.cause, r.until
        FROM (
            SELECT u.site, bool_or(u.again) AS again, (array_agg(u.cause ORDER BY u.nth DESC))[1] AS cause
            FROM unnest(_site, _again, _cause) WITH ORDINALITY AS u (site, again, cause, nth)
            GROUP BY u.site
        ) AS u
        CROSS JOIN LATERAL (SELECT * FROM site WHERE site.id = u.site OFFSET 0) AS s
        CROSS JOIN LATERAL (
            SELECT count(*) AS many, max(k.limited_until) AS until FROM slot AS k
            WHERE k.site = u.site AND k.limited_at > _now - s.limit_window) AS r
        WHERE u.again OR r.many >= s.limit_exits
    ) AS w
    WHERE site.id = w.site;
END
$$;
