INSERT INTO slot (site, exit, begun_at, begun_before, live, last_at, last_token)
SELECT j.value ->> 0, j.value ->> 1, j.value ->> 2, j.value ->> 3, j.value ->> 4, :now, j.value ->> 5
FROM json_each(:slots) AS j
WHERE true
ON CONFLICT (site, exit) DO UPDATE SET
    begun_at = excluded.begun_at,
    begun_before = excluded.begun_before,
    live = live + excluded.live,
    last_at = excluded.last_at,
    last_token = excluded.last_token
