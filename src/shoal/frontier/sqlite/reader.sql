-- name: find_run_number
-- The number of a run.
SELECT id FROM run WHERE run_id = :run_id

-- name: read_runs
-- All runs or one of them, newest first, with what is left in the lanes of its queue, and its counters.
SELECT run_id, scraper, mode, state, queue, policy, input, created_at, ended_at, move,
       (SELECT json_group_object(lane, n) FROM (
           SELECT lane, sum(l.waiting + l.leased) AS n FROM line AS l
           WHERE l.queue = run.queue AND l.waiting + l.leased > 0 GROUP BY lane)),
       waiting, leased, done, dead, expired, dropped, cancelled, items, requests, received, retries, snoozes, crashes,
       duplicates, refused, late, saved_requests, saved_bytes
FROM run
WHERE :run_id IS NULL OR run_id = :run_id
ORDER BY id DESC

-- name: read_items
-- Batches of items of a run after a cursor, unless their time is over.
SELECT i.id, i.url, i.grouping, i.body
FROM run AS r CROSS JOIN item AS i ON i.run = r.id AND i.id > :cursor
WHERE r.id = :run AND (r.results_until IS NULL OR r.results_until > :now)
ORDER BY i.id
LIMIT :most

-- name: read_dead
-- Dead letters of a run, page by page.
SELECT d.task, d.url, s.key, l.lane, d.handler, d.attempts, d.crashes, d.reason, d.died_at
FROM dead AS d CROSS JOIN site AS s ON s.id = d.site CROSS JOIN line AS l ON l.id = d.line
WHERE d.run = :run AND d.task > :after
ORDER BY d.task
LIMIT :limit

-- name: read_workers
-- Workers that hold leases or were seen lately, with some of what they have in hand.
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
WHERE shown.leases > 0 OR seen_at > :now - {{WORKER_KEPT}}
ORDER BY seen_at DESC

-- name: read_scrapers
-- What is left to do, by scraper.
SELECT scraper, sum(waiting + leased)
FROM line
WHERE waiting + leased > 0
GROUP BY scraper

-- name: read_sites
-- The sites with most work: their pace, what waits, when they may next be visited, how they were limited.
SELECT s.key, max(s.delay, s.crawl_delay, s.pace),
       (SELECT coalesce(sum(v.ready), 0) FROM visit AS v WHERE v.site = s.id)
       + (SELECT count(*) FROM task AS t WHERE t.state IN (1, 3) AND t.site = s.id) AS waiting,
       coalesce(sum(k.live), 0) AS leased,
       max(iif(s.site_delay, s.begun_at + s.site_delay, 0), coalesce(y.blocked_until, 0),
           coalesce(min(max(k.begun_at + max(s.delay, s.crawl_delay, s.pace), k.blocked_until)), 0)),
       coalesce(max(max(0, k.penalty - max(0, :now - coalesce(nullif(x.limited_until, 0), k.blocked_until)) / {{QUIET}})), 0),
       s.site_delay, coalesce(y.blocked_until, 0), coalesce(y.probing AND y.blocked_until <= :now, 0), y.cause
FROM site AS s
LEFT JOIN site_limit AS y ON y.site = s.id
LEFT JOIN slot AS k ON k.site = s.id
LEFT JOIN slot_limit AS x ON x.site = k.site AND x.exit = k.exit
GROUP BY s.id
HAVING waiting + leased > 0
ORDER BY waiting DESC
LIMIT :limit

-- name: read_sites_of_queue
-- The sites that will keep a queue busy longest, with the same columns.
SELECT s.key, max(s.delay, s.crawl_delay, s.pace), w.waiting, coalesce(sum(k.live), 0),
       max(iif(s.site_delay, s.begun_at + s.site_delay, 0), coalesce(y.blocked_until, 0),
           coalesce(min(max(k.begun_at + max(s.delay, s.crawl_delay, s.pace), k.blocked_until)), 0)),
       coalesce(max(max(0, k.penalty - max(0, :now - coalesce(nullif(x.limited_until, 0), k.blocked_until)) / {{QUIET}})), 0),
       s.site_delay, coalesce(y.blocked_until, 0), coalesce(y.probing AND y.blocked_until <= :now, 0), y.cause
FROM (
    SELECT v.site, sum(v.ready) AS waiting, sum(v.ready) * max(z.delay, z.crawl_delay, z.pace, z.site_delay) AS busy
    FROM line AS l CROSS JOIN visit AS v ON v.line = l.id CROSS JOIN site AS z ON z.id = v.site
    WHERE l.queue = :queue AND v.ready > 0
    GROUP BY v.site
    ORDER BY busy DESC, waiting DESC
    LIMIT :limit
) AS w
CROSS JOIN site AS s ON s.id = w.site
LEFT JOIN site_limit AS y ON y.site = s.id
LEFT JOIN slot AS k ON k.site = s.id
LEFT JOIN slot_limit AS x ON x.site = k.site AND x.exit = k.exit
GROUP BY s.id
ORDER BY w.busy DESC, w.waiting DESC

-- name: read_site
-- One site, with the same columns.
SELECT s.key, max(s.delay, s.crawl_delay, s.pace),
       (SELECT coalesce(sum(v.ready), 0) FROM visit AS v WHERE v.site = s.id)
       + (SELECT count(*) FROM task AS t WHERE t.state IN (1, 3) AND t.site = s.id) AS waiting,
       coalesce(sum(k.live), 0) AS leased,
       max(iif(s.site_delay, s.begun_at + s.site_delay, 0), coalesce(y.blocked_until, 0),
           coalesce(min(max(k.begun_at + max(s.delay, s.crawl_delay, s.pace), k.blocked_until)), 0)),
       coalesce(max(max(0, k.penalty - max(0, :now - coalesce(nullif(x.limited_until, 0), k.blocked_until)) / {{QUIET}})), 0),
       s.site_delay, coalesce(y.blocked_until, 0), coalesce(y.probing AND y.blocked_until <= :now, 0), y.cause
FROM site AS s
LEFT JOIN site_limit AS y ON y.site = s.id
LEFT JOIN slot AS k ON k.site = s.id
LEFT JOIN slot_limit AS x ON x.site = k.site AND x.exit = k.exit
WHERE s.key = :site
GROUP BY s.id

-- name: read_slots
-- The slots of a site, by exit.
SELECT k.exit, max(k.begun_at + max(s.delay, s.crawl_delay, s.pace), k.blocked_until), k.blocked_until, k.live,
       max(0, k.penalty - max(0, :now - coalesce(nullif(x.limited_until, 0), k.blocked_until)) / {{QUIET}}),
       coalesce(x.probing AND k.blocked_until <= :now, 0), x.cause
FROM site AS s
CROSS JOIN slot AS k ON k.site = s.id
LEFT JOIN slot_limit AS x ON x.site = k.site AND x.exit = k.exit
WHERE s.key = :site
ORDER BY k.exit

-- name: read_notes
-- Notes of a stream after a cursor.
SELECT id, body FROM note
WHERE stream = :stream AND id > :cursor AND (expires_at IS NULL OR expires_at > :now)
ORDER BY id
LIMIT :limit
