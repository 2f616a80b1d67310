UPDATE run SET results_until = NULL, input = NULL WHERE id IN (SELECT value FROM json_each(:runs))
