-- name: find_ripe
-- Delayed tasks whose time has come, and waiting tasks whose time is over; bounded.
SELECT json_array(
    (SELECT json_group_array(json_array(id, line, site))
     FROM (SELECT id, line, site FROM task WHERE state = 1 AND not_before <= :now ORDER BY not_before LIMIT :most)),
    (SELECT json_group_array(json_array(id, run, line, site, state))
     FROM (SELECT id, run, line, site, state FROM task
           WHERE expires_at IS NOT NULL AND state != 2 AND expires_at <= :now ORDER BY expires_at LIMIT :most))
)

-- name: ready_tasks
-- These tasks wait for nothing but their site.
UPDATE task SET state = 0, not_before = NULL WHERE id IN (SELECT value FROM json_each(:tasks))
