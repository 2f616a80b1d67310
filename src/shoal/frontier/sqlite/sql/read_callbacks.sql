SELECT r.run_id, b.callback
FROM job AS b CROSS JOIN run AS r ON r.id = b.run AND r.ended_at IS NOT NULL
WHERE b.callback IS NOT NULL
ORDER BY b.run
LIMIT :limit
