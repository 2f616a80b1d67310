SELECT t.id, t.url, s.key, l.lane || char(31) || l.pool, t.handler, t.priority, t.depth, t.attempts, t.crashes, t.extra, t.not_before,
       t.expires_at
FROM task AS t CROSS JOIN site AS s ON s.id = t.site CROSS JOIN line AS l ON l.id = t.line
WHERE t.run = :run AND t.id > :after
ORDER BY t.id
LIMIT :most
