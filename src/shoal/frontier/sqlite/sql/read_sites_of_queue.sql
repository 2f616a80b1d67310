SELECT s.key, max(s.delay, s.crawl_delay, s.pace), w.waiting, coalesce(sum(k.live), 0),
       max(iif(s.site_delay, s.begun_at + s.site_delay, 0), coalesce(y.blocked_until, 0),
           coalesce(min(max(k.begun_at + max(s.delay, s.crawl_delay, s.pace), k.blocked_until)), 0)),
       coalesce(max(max(0, k.penalty - max(0, :now - coalesce(nullif(x.limited_until, 0), k.blocked_until)) / :quiet)), 0),
       s.site_delay, coalesce(y.blocked_until, 0), coalesce(y.probing AND y.blocked_until <= :now, 0), y.cause
FROM (
    SELECT v.site, sum(v.ready) AS waiting, sum(v.ready) * max(z.delay, z.crawl_delay, z.pace, z.site_delay) AS busy
    FROM line AS l CROSS JOIN visit AS v ON v.line = l.id CROSS JOIN site AS z ON z.id = v.site
    WHERE l.queue = :queue AND v.ready > 0
    GROUP BY v.site
    ORDER BY busy DESC, waiting DESC
    LIMIT :limit
) AS w
CROSS JOIN site AS s ON s.id = w.site
LEFT JOIN site_limit AS y ON y.site = s.id
LEFT JOIN slot AS k ON k.site = s.id
LEFT JOIN slot_limit AS x ON x.site = k.site AND x.exit = k.exit
GROUP BY s.id
ORDER BY w.busy DESC, w.waiting DESC
