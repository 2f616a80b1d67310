DELETE FROM run WHERE id IN (SELECT value FROM json_each(:runs))
