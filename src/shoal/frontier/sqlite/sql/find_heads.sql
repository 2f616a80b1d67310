-- The first tasks of each of these sites in one line, and whether their runs may go on.
SELECT json_group_array(json_array(
    j.value,
    (SELECT json_group_array(json_array(
        h.id, h.run, r.run_id, r.state, h.expires_at, h.priority, h.depth, h.attempts, h.crashes, h.url, h.handler,
        h.extra))
     FROM (SELECT * FROM task
           WHERE state = 0 AND line = :line AND site = j.value ORDER BY priority DESC, id LIMIT :most) AS h
     CROSS JOIN run AS r ON r.id = h.run)
))
FROM json_each(:sites) AS j
