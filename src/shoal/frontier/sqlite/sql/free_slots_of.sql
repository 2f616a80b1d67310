UPDATE slot SET blocked_until = 0 WHERE exit = :exit AND site IN (SELECT value FROM json_each(:sites))
