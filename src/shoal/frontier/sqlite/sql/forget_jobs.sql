DELETE FROM job WHERE run IN (SELECT value FROM json_each(:runs))
