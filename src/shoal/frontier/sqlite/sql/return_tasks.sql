-- Back to the place they had; a step of a redirect brings another URL.
UPDATE task
SET state = 0, url = coalesce(j.value ->> 1, url), extra = coalesce(j.value ->> 2, extra)
FROM json_each(:tasks) AS j
WHERE task.id = j.value ->> 0
