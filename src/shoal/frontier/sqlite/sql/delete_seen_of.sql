DELETE FROM seen WHERE (run, key) IN (
    SELECT s.run, s.key FROM json_each(:runs) AS j CROSS JOIN seen AS s ON s.run = j.value LIMIT :most
)
