SELECT s.key, max(s.delay, s.crawl_delay, s.pace),
       (SELECT coalesce(sum(v.ready), 0) FROM visit AS v WHERE v.site = s.id)
       + (SELECT count(*) FROM task AS t WHERE t.state IN (1, 3) AND t.site = s.id) AS waiting,
       coalesce(sum(k.live), 0) AS leased,
       max(iif(s.site_delay, s.begun_at + s.site_delay, 0), coalesce(y.blocked_until, 0),
           coalesce(min(max(k.begun_at + max(s.delay, s.crawl_delay, s.pace), k.blocked_until)), 0)),
       coalesce(max(max(0, k.penalty - max(0, :now - coalesce(nullif(x.limited_until, 0), k.blocked_until)) / :quiet)), 0),
       s.site_delay, coalesce(y.blocked_until, 0), coalesce(y.probing AND y.blocked_until <= :now, 0), y.cause
FROM site AS s
LEFT JOIN site_limit AS y ON y.site = s.id
LEFT JOIN slot AS k ON k.site = s.id
LEFT JOIN slot_limit AS x ON x.site = k.site AND x.exit = k.exit
WHERE s.key = :site
GROUP BY s.id
