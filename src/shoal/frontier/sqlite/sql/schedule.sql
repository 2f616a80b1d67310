-- Tasks became ready (or, with a negative number, are no longer). A visit that is there already keeps its time.
INSERT INTO visit (line, site, due_at, ready)
SELECT j.value ->> 0, j.value ->> 1, :now, j.value ->> 2
FROM json_each(:places) AS j
WHERE true
ON CONFLICT (line, site) DO UPDATE SET ready = ready + excluded.ready
