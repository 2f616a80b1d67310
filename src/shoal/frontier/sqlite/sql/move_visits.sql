-- A slot of these sites has come free: whoever waits for the site may come as early as that.
UPDATE visit
SET due_at = j.value ->> 1
FROM json_each(:sites) AS j
WHERE visit.site = j.value ->> 0 AND visit.due_at > j.value ->> 1
