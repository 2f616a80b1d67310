SELECT i.id, i.url, i.grouping, i.body
FROM run AS r CROSS JOIN item AS i ON i.run = r.id AND i.id > :cursor
WHERE r.id = :run AND (r.results_until IS NULL OR r.results_until > :now)
ORDER BY i.id
LIMIT 500
