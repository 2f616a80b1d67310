-- name: find_holders
-- Workers of one machine that hold leases. There are never more leases than requests in flight: they are looked through.
SELECT json_group_array(json_array(w.id, w.pid, w.pid_started, w.notebook))
FROM worker AS w
WHERE w.machine = :machine AND w.id IN (SELECT worker FROM lease)

-- name: find_foreign_holders
-- Workers that hold leases and did not call this machine by the name it has now.
SELECT json_group_array(json_array(w.id, w.machine))
FROM worker AS w
WHERE w.machine != :machine AND w.id IN (SELECT worker FROM lease)

-- name: find_lost_leases
-- Leases that ran out, and leases of workers known to be gone; bounded. There are never more leases than requests in
-- flight: they are looked through.
SELECT json_group_array(json_array(
    l.task, l.run, l.line, l.site, l.auto_ack, l.expires_at, l.worker, l.token, s.limited, r.state = 'cancelled',
    coalesce(r.policy ->> '$.crashes', 3), t.crashes, max(s.delay, s.crawl_delay, s.pace), s.hard_timeout,
    json_array(k.begun_at, k.begun_before, k.last_token, k.exit, k.blocked_until, k.live, k.penalty, k.last_at)
))
FROM (
    SELECT * FROM lease WHERE expires_at <= :now OR worker IN (SELECT value FROM json_each(:gone)) LIMIT :most
) AS l
CROSS JOIN site AS s ON s.id = l.site
CROSS JOIN slot AS k ON k.site = l.site AND k.exit = l.exit
CROSS JOIN run AS r ON r.id = l.run
LEFT JOIN task AS t ON t.id = l.task

-- name: return_lost_tasks
-- Tasks of lost leases wait again, each with what it adds to crashes.
UPDATE task
SET state = 0, crashes = crashes + (j.value ->> 1)
FROM json_each(:tasks) AS j
WHERE task.id = j.value ->> 0

-- name: lose_probes
-- An exit that was tried again by a lost lease is tried by another.
UPDATE exit SET probe = 0 WHERE probe > 0 AND probe IN (SELECT value FROM json_each(:tokens))

-- name: find_cancelled_runs
-- Cancelled runs of which something waits.
SELECT json_group_array(id) FROM run WHERE state = 'cancelled' AND waiting > 0

-- name: find_cancelled_tasks
-- Tasks of cancelled runs that wait; bounded. In a shared queue the ready ones are ended by the claim that meets them,
-- except those of jobs, which can be found.
SELECT json_group_array(json_array(id, run, line, site, state))
FROM (
    SELECT id, run, line, site, state FROM task WHERE state IN (1, 3) AND run IN (SELECT value FROM json_each(:runs))
    UNION ALL
    SELECT t.id, t.run, t.line, t.site, t.state
    FROM json_each(:runs) AS j
    CROSS JOIN run AS r ON r.id = j.value AND r.queue = r.run_id
    CROSS JOIN line AS l ON l.queue = r.queue
    CROSS JOIN task AS t ON t.line = l.id AND t.state = 0
    UNION ALL
    SELECT t.id, t.run, t.line, t.site, t.state
    FROM json_each(:runs) AS j
    CROSS JOIN run AS r ON r.id = j.value AND r.queue != r.run_id
    CROSS JOIN task AS t ON t.run = r.id AND t.part IS NOT NULL AND t.state = 0
    LIMIT :most
)

-- name: delete_old_items
-- Delete some items whose time is over. Answers how many were in each batch.
DELETE FROM item WHERE id IN (
    SELECT i.id FROM run AS r CROSS JOIN item AS i ON i.run = r.id WHERE r.results_until <= :now LIMIT :most
)
RETURNING n

-- name: forget_results
-- Runs whose items are all gone have nothing left to expire. Jobs are looked after by `expire`.
UPDATE run SET results_until = NULL
WHERE results_until <= :now AND NOT is_job AND NOT EXISTS (SELECT 1 FROM item WHERE item.run = run.id)

-- name: delete_old_cache
-- Delete some entries of the cache whose time is over.
DELETE FROM cache WHERE key IN (SELECT key FROM cache WHERE expires_at <= :now LIMIT :most)

-- name: delete_old_notes
-- Delete some notes whose time is over.
DELETE FROM note WHERE id IN (
    SELECT id FROM note WHERE expires_at IS NOT NULL AND expires_at <= :now ORDER BY expires_at LIMIT :most
)

-- name: forget_workers
-- Forget workers that hold nothing and were not seen for long.
DELETE FROM worker WHERE seen_at < :now - {{WORKER_KEPT}} AND id NOT IN (SELECT worker FROM lease)

-- name: end_bans
-- Exits whose ban is over are no longer among those that claims heed.
UPDATE exit SET banned_until = 0 WHERE banned_until BETWEEN 1 AND :now
