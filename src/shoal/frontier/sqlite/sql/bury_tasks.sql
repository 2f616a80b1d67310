INSERT INTO dead (task, run, line, site, priority, depth, attempts, crashes, url, handler, extra, reason, died_at)
SELECT t.id, t.run, t.line, t.site, t.priority, t.depth, t.attempts + (j.value ->> 2), t.crashes + (j.value ->> 3),
       t.url, t.handler, t.extra, j.value ->> 1, :now
FROM json_each(:tasks) AS j
CROSS JOIN task AS t ON t.id = j.value ->> 0
