-- Of these, the visits that have nothing to do.
DELETE FROM visit
WHERE ready <= 0 AND (line, site) IN (SELECT j.value ->> 0, j.value ->> 1 FROM json_each(:places) AS j)
