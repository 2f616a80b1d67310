-- name: count_leases
-- How many leases of a run are with workers.
SELECT count(*) FROM lease WHERE run = :run

-- name: pack_run
-- A run, and between which numbers those of its tasks and dead letters are.
SELECT run_id, scraper, mode, nullif(queue, run_id), policy, input, created_at, sealed,
       (SELECT min(id) FROM (SELECT min(id) AS id FROM task UNION ALL SELECT min(task) FROM dead WHERE run = :run)),
       (SELECT seq FROM sqlite_sequence WHERE name = 'task')
FROM run
WHERE id = :run

-- name: pack_sites
-- Sites whose clocks may still matter, with their slots.
SELECT s.id, s.key, s.crawl_delay, s.begun_at,
       (SELECT json_group_array(json_array(k.exit, k.begun_at, k.blocked_until, k.penalty, k.last_at))
        FROM slot AS k WHERE k.site = s.id)
FROM site AS s
WHERE s.id > :after
  AND (s.crawl_delay > 0 OR s.begun_at > :since
       OR EXISTS (SELECT 1 FROM slot AS k
                  WHERE k.site = s.id AND (k.penalty > 0 OR k.begun_at > :since OR k.blocked_until > :since)))
ORDER BY s.id
LIMIT :most

-- name: pack_tasks
-- Tasks of a run that have not ended, page by page. A lane and its pool are one word.
SELECT t.id, t.url, s.key, l.lane || char(31) || l.pool, t.handler, t.priority, t.depth, t.attempts, t.crashes, t.extra, t.not_before,
       t.expires_at
FROM task AS t CROSS JOIN site AS s ON s.id = t.site CROSS JOIN line AS l ON l.id = t.line
WHERE t.run = :run AND t.id > :after
ORDER BY t.id
LIMIT :most

-- name: pack_letters
-- Dead letters of a run, page by page.
SELECT d.task, d.url, s.key, l.lane || char(31) || l.pool, d.handler, d.priority, d.depth, d.attempts, d.crashes, d.extra, d.reason, d.died_at
FROM dead AS d CROSS JOIN site AS s ON s.id = d.site CROSS JOIN line AS l ON l.id = d.line
WHERE d.run = :run AND d.task > :after
ORDER BY d.task
LIMIT :most

-- name: pack_items
-- Batches of items of a run, page by page.
SELECT id, n, url, grouping, body FROM item WHERE run = :run AND id > :after ORDER BY id LIMIT :most

-- name: pack_endings
-- How pages of a run ended, page by page.
SELECT name, state, ended_at, reason, url FROM ending WHERE run = :run AND name > :after ORDER BY name LIMIT :most

-- name: pack_keys
-- The keys that a run has seen, page by page, as far as they are in the sorted table.
SELECT key FROM seen WHERE run = :run AND key > :after ORDER BY key LIMIT :most

-- name: arrive_run
-- Make a run that comes from another store: paused until all of it is here.
INSERT INTO run (run_id, scraper, mode, state, queue, policy, input, sealed, created_at, move)
VALUES (:run_id, :scraper, :mode, 'paused', :queue, :policy, :input, :sealed, :created_at, :move)
ON CONFLICT (run_id) DO NOTHING

-- name: last_number
-- The last number that a task got here.
SELECT seq FROM sqlite_sequence WHERE name = 'task'

-- name: reserve_numbers
-- From now on tasks get higher numbers than this one.
UPDATE sqlite_sequence SET seq = :last WHERE name = 'task'

-- name: first_numbers
-- The same in a store that never had a task.
INSERT INTO sqlite_sequence (name, seq) VALUES ('task', :last)

-- name: unpack_tasks
-- Put tasks that came from another store where they belong.
INSERT INTO task (id, run, line, site, state, priority, depth, attempts, crashes, not_before, expires_at, url, handler, extra)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: unpack_letters
-- The same with dead letters.
INSERT INTO dead (task, run, line, site, priority, depth, attempts, crashes, url, handler, extra, reason, died_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: unpack_sites
-- The clocks and crawl delays of sites that came from another store. They only ever go forward.
UPDATE site
SET begun_at = max(begun_at, j.value ->> 1), begun_before = max(begun_before, j.value ->> 1),
    crawl_delay = max(crawl_delay, j.value ->> 2)
FROM json_each(:sites) AS j
WHERE site.id = j.value ->> 0

-- name: unpack_slots
-- The same with slots.
INSERT INTO slot (site, exit, begun_at, begun_before, blocked_until, penalty, last_at)
VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (site, exit) DO UPDATE SET
    begun_at = max(begun_at, excluded.begun_at),
    begun_before = max(begun_before, excluded.begun_before),
    blocked_until = max(blocked_until, excluded.blocked_until),
    penalty = max(penalty, excluded.penalty),
    last_at = max(last_at, excluded.last_at)

-- name: count_stored
-- What has come in of an arriving run; tasks also if they have expired since.
SELECT (SELECT count(*) FROM task WHERE run = r.id) + r.expired, (SELECT count(*) FROM dead WHERE run = r.id),
       (SELECT count(*) FROM item WHERE run = r.id), (SELECT count(*) FROM seen WHERE run = r.id)
FROM run AS r
WHERE r.id = :run
