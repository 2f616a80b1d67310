SELECT s.key, max(s.delay, s.crawl_delay), s.load - coalesce(sum(k.live), 0), coalesce(sum(k.live), 0),
       max(s.next_at, coalesce(min(max(k.next_at, k.blocked_until)), 0)), coalesce(max(k.penalty), 0)
FROM site AS s LEFT JOIN slot AS k ON k.site = s.id
WHERE s.load > 0
GROUP BY s.id
ORDER BY s.load DESC
LIMIT :limit
