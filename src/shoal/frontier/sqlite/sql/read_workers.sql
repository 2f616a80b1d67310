WITH held AS (
    SELECT worker, task, row_number() OVER (PARTITION BY worker ORDER BY task) AS nth,
           count(*) OVER (PARTITION BY worker) AS leases
    FROM lease
), shown AS (
    SELECT held.worker, max(held.leases) AS leases,
           json_group_array(json_array(run.run_id, line.lane, task.url)) FILTER (WHERE task.id IS NOT NULL) AS tasks
    FROM held
    LEFT JOIN task ON task.id = held.task
    LEFT JOIN run ON run.id = task.run
    LEFT JOIN line ON line.id = task.line
    WHERE held.nth <= :most
    GROUP BY held.worker
)
SELECT worker_id, machine, pid, pid_started, notebook, duties, seen_at, coalesce(shown.leases, 0), :now - seen_at,
       coalesce(shown.tasks, '[]')
FROM worker LEFT JOIN shown ON shown.worker = worker.id
WHERE shown.leases > 0 OR seen_at > :now - 3600000
ORDER BY seen_at DESC
