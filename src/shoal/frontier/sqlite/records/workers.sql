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

-- name: renew_leases
-- These leases run anew, for as long as their sites say; not those of cancelled runs.
UPDATE lease
SET expires_at = :now + (SELECT lease FROM site WHERE site.id = lease.site)
FROM json_each(:leases) AS j
WHERE lease.task = j.value ->> 0 AND lease.token = j.value ->> 1
  AND (SELECT state FROM run WHERE run.id = lease.run) != 'cancelled'

-- name: find_live_tokens
-- Those of these leases that still stand, and whose runs are not cancelled.
SELECT json_group_array(l.token)
FROM json_each(:leases) AS j
CROSS JOIN lease AS l ON l.task = j.value ->> 0 AND l.token = j.value ->> 1
CROSS JOIN run AS r ON r.id = l.run
WHERE r.state != 'cancelled'
