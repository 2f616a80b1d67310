INSERT INTO task (run, line, site, state, priority, depth, not_before, expires_at, url, handler, extra)
SELECT :run, j.value ->> 0, j.value ->> 1, j.value ->> 2, j.value ->> 3, j.value ->> 4,
       j.value ->> 5, j.value ->> 6, j.value ->> 7, j.value ->> 8, j.value ->> 9
FROM json_each(:tasks) AS j
