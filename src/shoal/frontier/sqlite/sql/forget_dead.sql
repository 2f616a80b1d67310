DELETE FROM dead WHERE task IN (SELECT value FROM json_each(:tasks))
