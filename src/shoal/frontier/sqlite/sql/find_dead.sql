SELECT json_group_array(json_array(task, line, site))
FROM dead
WHERE run = :run AND (:tasks IS NULL OR task IN (SELECT value FROM json_each(:tasks)))
