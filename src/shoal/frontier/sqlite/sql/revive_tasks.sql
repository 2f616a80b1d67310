INSERT INTO task (id, run, line, site, priority, depth, url, handler, extra)
SELECT task, run, line, site, priority, depth, url, handler, extra
FROM dead WHERE task IN (SELECT value FROM json_each(:tasks))
