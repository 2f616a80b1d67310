-- A run, and between which numbers those of its tasks and dead letters are.
SELECT run_id, scraper, mode, nullif(queue, run_id), policy, input, created_at, sealed,
       (SELECT min(id) FROM (SELECT min(id) AS id FROM task UNION ALL SELECT min(task) FROM dead WHERE run = :run)),
       (SELECT seq FROM sqlite_sequence WHERE name = 'task')
FROM run
WHERE id = :run
