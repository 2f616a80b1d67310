SELECT worker_id, machine, pid, pid_started, notebook, seen_at,
       (SELECT count(*) FROM lease WHERE lease.worker = worker.id) AS leases
FROM worker
WHERE leases > 0 OR seen_at > :now - 3600000
ORDER BY seen_at DESC
