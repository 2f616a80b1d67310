-- name: find_contested_sites
-- Sites where runs with different rules have met, with their rules: those that were not looked at for longest.
SELECT json_group_array(json_array(
    s.id, s.key, s.delay, s.site_delay, s.concurrency, s.hard_timeout, s.lease, s.limit_exits, s.limit_window
))
FROM (SELECT site FROM contested_site ORDER BY looked_at LIMIT :most) AS c
CROSS JOIN site AS s ON s.id = c.site

-- name: find_visitors
-- The lines where tasks of these sites are ready, each with the run that has it for itself; null = it has several.
SELECT json_group_array(json_array(v.site, v.line, r.id))
FROM json_each(:sites) AS j
CROSS JOIN visit AS v ON v.site = j.value
CROSS JOIN line AS l ON l.id = v.line
LEFT JOIN run AS r ON r.run_id = l.queue AND r.queue = r.run_id

-- name: find_runs_ready
-- The runs of the first tasks of a site that are ready in a line, and how many tasks these are.
SELECT count(*), json_group_array(DISTINCT run)
FROM (SELECT run FROM task WHERE state = 0 AND line = :line AND site = :site LIMIT :most)

-- name: find_runs_aside
-- The runs of some tasks of a site that wait for their time, or for their paused run, and how many tasks these are.
SELECT count(*), json_group_array(DISTINCT run)
FROM (SELECT run FROM task WHERE state IN (1, 3) AND site = :site LIMIT :most)

-- name: find_leases_of_sites
-- The leases of these sites. There are never more leases than requests in flight: they are looked through.
SELECT json_group_array(json_array(site, run, token)) FROM lease WHERE site IN (SELECT value FROM json_each(:sites))

-- name: read_policies
-- The policies of runs, and whether they have ended.
SELECT json_group_array(json_array(r.id, r.state IN ('finished', 'cancelled'), r.policy))
FROM json_each(:runs) AS j
CROSS JOIN run AS r ON r.id = j.value

-- name: hold_alone
-- Slots whose last lease is one of these, and whose clock stands behind a moment: it stands at another from now on, or
-- later. Answers their sites.
UPDATE slot SET begun_at = max(begun_at, j.value ->> 3)
FROM json_each(:leases) AS j
WHERE slot.site = j.value ->> 0 AND slot.last_token = j.value ->> 1 AND slot.live > 0 AND slot.begun_at > j.value ->> 2
RETURNING slot.site

-- name: visit_again
-- Whoever waits for these sites looks at their clocks anew.
UPDATE visit SET due_at = :now WHERE site IN (SELECT value FROM json_each(:sites)) AND due_at > :now

-- name: note_contested
-- These sites have been looked at.
UPDATE contested_site SET looked_at = :now WHERE site IN (SELECT value FROM json_each(:sites))

-- name: forget_contested
-- All who visit these sites have the same rules.
DELETE FROM contested_site WHERE site IN (SELECT value FROM json_each(:sites))
