SELECT worker_id, machine, pid, pid_started, notebook, seen_at, coalesce(held.leases, 0)
FROM worker LEFT JOIN (SELECT worker, count(*) AS leases FROM lease GROUP BY worker) AS held ON held.worker = worker.id
WHERE held.leases > 0 OR seen_at > :now - 3600000
ORDER BY seen_at DESC
