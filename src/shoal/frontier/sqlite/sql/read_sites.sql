SELECT s.key, max(s.delay, s.crawl_delay) AS pace, s.load - coalesce(sum(k.live), 0) AS waiting, coalesce(sum(k.live), 0),
       max(iif(s.site_delay, s.begun_at + s.site_delay, 0),
           coalesce(min(max(k.begun_at + max(s.delay, s.crawl_delay), k.blocked_until)), 0)),
       coalesce(max(k.penalty), 0)
FROM site AS s LEFT JOIN slot AS k ON k.site = s.id
WHERE s.load > 0
GROUP BY s.id
ORDER BY waiting DESC
LIMIT :limit
