UPDATE task
SET state = 1, not_before = :now + (j.value ->> 1), attempts = attempts + 1
FROM json_each(:tasks) AS j
WHERE task.id = j.value ->> 0
