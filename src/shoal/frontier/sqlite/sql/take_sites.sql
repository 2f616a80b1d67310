UPDATE site
SET next_at = j.value ->> 1, last_token = j.value ->> 2
FROM json_each(:sites) AS j
WHERE site.id = j.value ->> 0
