-- name: find_runs_of_key
-- The runs that have seen this key, newest first, as far as it is in the sorted table.
SELECT r.id FROM run AS r
WHERE (:run_id IS NULL OR r.run_id = :run_id) AND EXISTS (SELECT 1 FROM seen WHERE run = r.id AND key = :key)

-- name: find_key_lately
-- What was seen lately and may contain this key.
SELECT l.run, l.keys FROM seen_lately AS l CROSS JOIN run AS r ON r.id = l.run
WHERE (:run_id IS NULL OR r.run_id = :run_id) AND instr(l.keys, :key) > 0

-- name: find_task_of_url
-- The tasks in these runs that may be for a page, and each run at least once. Looks through what waits for the site, what
-- is leased, and the runs' dead letters. `tail`: the URL of the page without its scheme; `told`: the same inside JSON.
SELECT r.id, r.run_id, r.scraper, r.state, f.state, f.id, n.lane, n.pool,
       CASE f.state WHEN 0 THEN
           (SELECT count(*) FROM task AS o WHERE o.state = 0 AND o.line = f.line AND o.site = f.site AND o.priority > f.priority)
           + (SELECT count(*) FROM task AS o
              WHERE o.state = 0 AND o.line = f.line AND o.site = f.site AND o.priority = f.priority AND o.id < f.id)
       ELSE 0 END,
       f.not_before, f.expires_at, f.attempts, f.crashes, w.worker_id, l.exit, l.expires_at, f.reason, f.died_at, f.url, f.extra
FROM json_each(:runs) AS j
CROSS JOIN run AS r ON r.id = j.value
LEFT JOIN (
    SELECT t.run, t.id, t.line, t.site, t.state, t.priority, t.not_before, t.expires_at, t.attempts, t.crashes, t.url,
           t.extra, NULL AS reason, NULL AS died_at
    FROM site AS s CROSS JOIN visit AS v ON v.site = s.id
    CROSS JOIN task AS t ON t.state = 0 AND t.line = v.line AND t.site = v.site
    WHERE s.key = :site
    UNION ALL
    SELECT t.run, t.id, t.line, t.site, t.state, t.priority, t.not_before, t.expires_at, t.attempts, t.crashes, t.url,
           t.extra, NULL, NULL
    FROM site AS s CROSS JOIN task AS t ON t.state IN (1, 3) AND t.site = s.id
    WHERE s.key = :site
    UNION ALL
    SELECT t.run, t.id, t.line, t.site, t.state, t.priority, t.not_before, t.expires_at, t.attempts, t.crashes, t.url,
           t.extra, NULL, NULL
    FROM lease AS l CROSS JOIN site AS s ON s.id = l.site AND s.key = :site CROSS JOIN task AS t ON t.id = l.task
    UNION ALL
    SELECT d.run, d.task, d.line, d.site, 4, d.priority, NULL, NULL, d.attempts, d.crashes, d.url, d.extra, d.reason,
           d.died_at
    FROM json_each(:runs) AS i CROSS JOIN dead AS d ON d.run = i.value
    CROSS JOIN site AS s ON s.id = d.site AND s.key = :site
) AS f ON f.run = r.id AND (substr(f.url, -length(:tail)) = :tail OR instr(f.extra, :told) > 0)
LEFT JOIN line AS n ON n.id = f.line
LEFT JOIN lease AS l ON l.task = f.id
LEFT JOIN worker AS w ON w.id = l.worker
ORDER BY r.id DESC, f.state, f.id

-- name: find_endings
-- How a page ended in each of these runs, where it was not done; the last ending first.
SELECT e.run, e.state, e.ended_at, e.reason, e.url
FROM json_each(:runs) AS j CROSS JOIN ending AS e ON e.run = j.value AND e.name IN (:first, :second)
ORDER BY e.ended_at DESC
