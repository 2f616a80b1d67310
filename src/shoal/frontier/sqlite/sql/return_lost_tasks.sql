UPDATE task
SET state = 0, crashes = crashes + (j.value ->> 1)
FROM json_each(:tasks) AS j
WHERE task.id = j.value ->> 0
