-- name: create_run
-- Make a run that is still being seeded, unless there is one of that id.
INSERT INTO run (run_id, scraper, mode, state, queue, policy, input, created_at)
VALUES (:run_id, :scraper, :mode, 'open', :queue, :policy, :input, :now)
ON CONFLICT (run_id) DO NOTHING

-- name: seal_run
-- Seeding is complete: the run ends when nothing of it is left.
UPDATE run SET sealed = 1, state = CASE WHEN state = 'open' THEN 'running' ELSE state END WHERE id = :run

-- name: pause_run
-- The run stands still.
UPDATE run SET state = 'paused' WHERE id = :run

-- name: resume_run
-- Back to where it was: a run that was never sealed is still being seeded.
UPDATE run SET state = iif(sealed, 'running', 'open') WHERE id = :run

-- name: cancel_run
-- The run has ended, and its results are kept for as long as its policy says.
UPDATE run
SET state = 'cancelled', ended_at = :now, results_until = :now + (policy ->> '$.results_ttl')
WHERE id = :run

-- name: reopen_run
-- A finished run has work again, and its results are kept.
UPDATE run SET state = 'running', ended_at = NULL, results_until = NULL WHERE id = :run AND state = 'finished'

-- name: hold_lines
-- Nothing is claimed from the lines of a queue, or it is again.
UPDATE line SET held = :held WHERE queue = :queue

-- name: mark_run
-- Where a run is on its way between two stores.
UPDATE run SET move = :move WHERE id = :run

-- name: find_held
-- The tasks of a run that were set aside while it was paused.
SELECT json_group_array(json_array(id, line, site)) FROM task WHERE state IN (1, 3) AND state = 3 AND run = :run

-- name: find_dead
-- Dead letters of a run, all or some.
SELECT json_group_array(json_array(d.task, d.line, d.site, s.key))
FROM dead AS d CROSS JOIN site AS s ON s.id = d.site
WHERE d.run = :run AND (:tasks IS NULL OR d.task IN (SELECT value FROM json_each(:tasks)))

-- name: revive_tasks
-- Dead letters wait again, as new. They still have to be forgotten.
INSERT INTO task (id, run, line, site, priority, depth, url, handler, extra, part)
SELECT task, run, line, site, priority, depth, url, handler, extra, iif(:is_job, coalesce(extra ->> '$.group', ''), NULL)
FROM dead WHERE task IN (SELECT value FROM json_each(:tasks))

-- name: forget_dead
-- Delete dead letters.
DELETE FROM dead WHERE task IN (SELECT value FROM json_each(:tasks))

-- name: delete_items_of
-- Delete some of the items of these runs.
DELETE FROM item WHERE id IN (
    SELECT i.id FROM json_each(:runs) AS j CROSS JOIN item AS i ON i.run = j.value LIMIT :most
)

-- name: delete_dead_of
-- Delete some of their dead letters.
DELETE FROM dead WHERE task IN (
    SELECT d.task FROM json_each(:runs) AS j CROSS JOIN dead AS d ON d.run = j.value LIMIT :most
)

-- name: delete_endings_of
-- Delete some of what is remembered of how their pages ended.
DELETE FROM ending WHERE (run, name) IN (
    SELECT e.run, e.name FROM json_each(:runs) AS j CROSS JOIN ending AS e ON e.run = j.value LIMIT :most
)

-- name: delete_seen_of
-- Delete some of the keys that they have seen, from the sorted table.
DELETE FROM seen WHERE (run, key) IN (
    SELECT s.run, s.key FROM json_each(:runs) AS j CROSS JOIN seen AS s ON s.run = j.value LIMIT :most
)

-- name: forget_runs
-- Delete runs of which nothing else is left.
DELETE FROM run WHERE id IN (SELECT value FROM json_each(:runs))
