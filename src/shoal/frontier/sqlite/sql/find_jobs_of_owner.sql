SELECT r.run_id
FROM job AS b CROSS JOIN run AS r ON r.id = b.run
WHERE b.owner = :owner AND b.run < :before
ORDER BY b.run DESC
LIMIT :limit
