UPDATE job SET callback = NULL
WHERE run IN (SELECT r.id FROM json_each(:ids) AS j CROSS JOIN run AS r ON r.run_id = j.value)
