-- name: find_worker
-- The number of a worker that was seen less than half a second ago.
SELECT id FROM worker WHERE worker_id = :worker_id AND seen_at BETWEEN :now - 499 AND :now

-- name: greet_worker
-- A worker was seen now, perhaps for the first time. Answers its number.
INSERT INTO worker (worker_id, machine, pid, pid_started, notebook, duties, seen_at)
VALUES (:worker_id, :machine, :pid, :pid_started, :notebook, :duties, :now)
ON CONFLICT (worker_id) DO UPDATE SET seen_at = :now
RETURNING id

-- name: find_leases_of_worker
-- What one worker holds. There are never more leases than requests in flight: they are looked through.
SELECT json_group_array(json_array(r.run_id, l.task, l.token))
FROM lease AS l
CROSS JOIN run AS r ON r.id = l.run
WHERE l.worker = :worker
