-- name: find_leases
-- The leases of these tasks, with the clocks that their ends will move; and the leases by exits that are tried again.
SELECT json_array(json_group_array(json_array(
    l.task, l.token, l.run, l.line, l.site, l.auto_ack, s.delay, s.site_delay, s.crawl_delay, s.pace, s.limited,
    json_array(k.begun_at, k.begun_before, k.last_token, k.exit, k.blocked_until, k.live, k.penalty, k.last_at),
    iif(s.site_delay, json_array(s.begun_at, s.begun_before, s.last_token), NULL)
)), (SELECT json_group_array(probe) FROM exit WHERE probe > 0))
FROM json_each(:tasks) AS j
CROSS JOIN lease AS l ON l.task = j.value
CROSS JOIN site AS s ON s.id = l.site
CROSS JOIN slot AS k ON k.site = l.site AND k.exit = l.exit

-- name: end_leases
-- These tasks are no longer with a worker.
DELETE FROM lease WHERE task IN (SELECT value FROM json_each(:tasks))

-- name: end_tasks
-- These tasks have ended: what is left of them is counted, and kept elsewhere.
DELETE FROM task WHERE id IN (SELECT value FROM json_each(:tasks))

-- name: delay_tasks
-- These tasks are tried again, each after its own wait: with one more failure, or unharmed (0) because they step aside.
UPDATE task
SET state = 1, not_before = :now + (j.value ->> 1), attempts = attempts + (j.value ->> 2),
    extra = coalesce(j.value ->> 3, extra)
FROM json_each(:tasks) AS j
WHERE task.id = j.value ->> 0

-- name: return_tasks
-- Back to the place they had, some with another `extra`.
UPDATE task
SET state = 0, extra = coalesce(j.value ->> 1, extra)
FROM json_each(:tasks) AS j
WHERE task.id = j.value ->> 0

-- name: bury_tasks
-- These tasks become dead letters, each with its reason, what it adds to attempts and crashes, and perhaps another `extra`.
-- They still have to be deleted.
INSERT INTO dead (task, run, line, site, priority, depth, attempts, crashes, url, handler, extra, reason, died_at)
SELECT t.id, t.run, t.line, t.site, t.priority, t.depth, t.attempts + (j.value ->> 2), t.crashes + (j.value ->> 3),
       t.url, t.handler, coalesce(j.value ->> 4, t.extra), j.value ->> 1, :now
FROM json_each(:tasks) AS j
CROSS JOIN task AS t ON t.id = j.value ->> 0

-- name: store_items
-- Keep the items of a page, or of several, as one JSON array each.
INSERT INTO item (run, n, url, grouping, body) VALUES (?, ?, ?, ?, ?)

-- name: set_paces
-- The crawl delays that sites ask for, and the paces that they were found to bear.
UPDATE site SET crawl_delay = j.column2, pace = j.column3 FROM (VALUES (?, ?, ?)) AS j WHERE site.id = j.column1

-- name: move_visits
-- A slot of these sites has come free: whoever waits for the site may come as early as that.
UPDATE visit
SET due_at = j.column2
FROM (VALUES (?, ?)) AS j
WHERE visit.site = j.column1 AND visit.due_at > j.column2
