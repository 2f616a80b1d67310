INSERT INTO slot (site, exit, next_at, live, last_at, last_token)
SELECT j.value ->> 0, j.value ->> 1, j.value ->> 2, j.value ->> 3, :now, j.value ->> 4
FROM json_each(:slots) AS j
WHERE true
ON CONFLICT (site, exit) DO UPDATE SET
    next_at = excluded.next_at,
    live = live + excluded.live,
    last_at = excluded.last_at,
    last_token = excluded.last_token
