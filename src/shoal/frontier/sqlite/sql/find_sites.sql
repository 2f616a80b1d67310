-- Those of these sites that are known, with their rules, and whether any of their tasks has not ended.
SELECT json_group_array(json_array(
    s.key, s.id,
    EXISTS (SELECT 1 FROM visit AS v WHERE v.site = s.id)
    OR EXISTS (SELECT 1 FROM slot AS k WHERE k.site = s.id AND k.live > 0)
    OR EXISTS (SELECT 1 FROM task AS t WHERE t.state IN (1, 3) AND t.site = s.id),
    s.delay, s.site_delay, s.concurrency, s.hard_timeout, s.lease, s.limit_exits, s.limit_window
))
FROM json_each(:sites) AS j
CROSS JOIN site AS s ON s.key = j.value
