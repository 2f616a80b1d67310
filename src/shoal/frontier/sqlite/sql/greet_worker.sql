INSERT INTO worker (worker_id, machine, pid, pid_started, notebook, duties, seen_at)
VALUES (:worker_id, :machine, :pid, :pid_started, :notebook, :duties, :now)
ON CONFLICT (worker_id) DO UPDATE SET seen_at = :now
RETURNING id
