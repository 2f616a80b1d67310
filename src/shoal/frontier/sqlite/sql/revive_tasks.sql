INSERT INTO task (id, run, line, site, priority, depth, url, handler, extra, part)
SELECT task, run, line, site, priority, depth, url, handler, extra, iif(:is_job, coalesce(extra ->> '$.group', ''), NULL)
FROM dead WHERE task IN (SELECT value FROM json_each(:tasks))
