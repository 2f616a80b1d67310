-- The first tasks of each of these sites in one line, as they were accepted.
SELECT json_group_array(json_array(
    t.site, t.id, t.run, t.expires_at, t.priority, t.depth, t.attempts, t.crashes, t.url, t.handler, t.extra
))
FROM json_each(:sites) AS j
CROSS JOIN task AS t ON t.id IN (
    SELECT id FROM task WHERE state = 0 AND line = :line AND site = j.value ORDER BY priority DESC, id LIMIT :most
)
