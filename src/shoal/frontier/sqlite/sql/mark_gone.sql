UPDATE job SET gone_at = :now, callback = NULL, error = NULL WHERE run IN (SELECT value FROM json_each(:runs))
