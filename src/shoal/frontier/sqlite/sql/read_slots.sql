SELECT k.exit, max(k.begun_at + max(s.delay, s.crawl_delay, s.pace), k.blocked_until), k.blocked_until, k.live,
       max(0, k.penalty - max(0, :now - coalesce(nullif(x.limited_until, 0), k.blocked_until)) / :quiet),
       coalesce(x.probing AND k.blocked_until <= :now, 0), x.cause
FROM site AS s
CROSS JOIN slot AS k ON k.site = s.id
LEFT JOIN slot_limit AS x ON x.site = k.site AND x.exit = k.exit
WHERE s.key = :site
ORDER BY k.exit
