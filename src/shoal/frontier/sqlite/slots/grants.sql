-- name: find_heads
-- The first tasks of each of these sites in one line, as they were accepted.
SELECT json_group_array(json_array(
    t.site, t.id, t.run, t.expires_at, t.priority, t.depth, t.attempts, t.crashes, t.url, t.handler, t.extra
))
FROM json_each(:sites) AS j
CROSS JOIN task AS t ON t.id IN (
    SELECT id FROM task WHERE state = 0 AND line = :line AND site = j.value ORDER BY priority DESC, id LIMIT :most
)

-- name: grant_leases
-- Write down the leases that a claim has granted, one row each.
INSERT INTO lease (task, token, worker, run, line, site, exit, expires_at, auto_ack)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: lease_tasks
-- These tasks are with a worker now.
UPDATE task SET state = 2 WHERE id IN (SELECT value FROM json_each(:tasks))

-- name: hold_tasks
-- These tasks are set aside, because their run is paused.
UPDATE task SET state = 3 WHERE id IN (SELECT value FROM json_each(:tasks))

-- name: save_visits
-- When these sites may next be visited in a line, and how many of its tasks are ready there.
INSERT INTO visit (line, site, due_at, ready)
VALUES (?, ?, ?, ?)
ON CONFLICT (line, site) DO UPDATE SET due_at = excluded.due_at, ready = excluded.ready

-- name: leave_sites
-- Nothing of this line is ready at these sites any more.
DELETE FROM visit WHERE line = :line AND site IN (SELECT value FROM json_each(:sites))
