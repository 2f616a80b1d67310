UPDATE site_limit SET blocked_until = 0 WHERE site IN (SELECT value FROM json_each(:sites))
