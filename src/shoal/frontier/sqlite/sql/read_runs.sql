SELECT run_id, scraper, mode, state, queue, policy, input, created_at, ended_at, move,
       (SELECT json_group_object(lane, n) FROM (
           SELECT lane, sum(l.waiting + l.leased) AS n FROM line AS l
           WHERE l.queue = run.queue AND l.waiting + l.leased > 0 GROUP BY lane)),
       waiting, leased, done, dead, expired, dropped, cancelled, items, requests, received, retries, snoozes, crashes,
       duplicates, refused, late, saved_requests, saved_bytes
FROM run
WHERE :run_id IS NULL OR run_id = :run_id
ORDER BY id DESC
