UPDATE slot_limit SET probing = 0, probe = 0 WHERE exit = :exit AND site IN (SELECT value FROM json_each(:sites))
