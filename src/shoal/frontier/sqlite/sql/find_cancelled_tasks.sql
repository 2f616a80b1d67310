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
