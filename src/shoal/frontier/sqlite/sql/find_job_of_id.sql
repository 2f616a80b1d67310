SELECT r.run_id, r.id, r.queue, r.ended_at, coalesce(b.fingerprint, x'')
FROM run AS r LEFT JOIN job AS b ON b.run = r.id
WHERE r.run_id = :run_id
