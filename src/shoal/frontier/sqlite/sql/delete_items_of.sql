DELETE FROM item WHERE id IN (
    SELECT i.id FROM json_each(:runs) AS j CROSS JOIN item AS i ON i.run = j.value LIMIT :most
)
