DELETE FROM item WHERE id IN (
    SELECT i.id FROM run AS r CROSS JOIN item AS i ON i.run = r.id WHERE r.results_until <= :now LIMIT :most
)
RETURNING n
