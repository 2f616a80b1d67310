DELETE FROM dead WHERE task IN (
    SELECT d.task FROM json_each(:runs) AS j CROSS JOIN dead AS d ON d.run = j.value LIMIT :most
)
