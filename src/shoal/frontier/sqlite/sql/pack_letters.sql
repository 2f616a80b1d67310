SELECT d.task, d.url, s.key, l.lane || char(31) || l.pool, d.handler, d.priority, d.depth, d.attempts, d.crashes, d.extra, d.reason, d.died_at
FROM dead AS d CROSS JOIN site AS s ON s.id = d.site CROSS JOIN line AS l ON l.id = d.line
WHERE d.run = :run AND d.task > :after
ORDER BY d.task
LIMIT :most
