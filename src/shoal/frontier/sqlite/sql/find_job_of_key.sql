SELECT r.run_id, r.id, r.queue, r.ended_at, b.fingerprint
FROM job AS b CROSS JOIN run AS r ON r.id = b.run
WHERE b.owner = :owner AND b.key = :key
