DELETE FROM ending WHERE (run, name) IN (
    SELECT e.run, e.name FROM json_each(:runs) AS j CROSS JOIN ending AS e ON e.run = j.value LIMIT :most
)
