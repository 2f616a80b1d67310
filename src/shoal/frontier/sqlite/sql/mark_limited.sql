UPDATE site SET limited = 1 WHERE id IN (SELECT value FROM json_each(:sites))
