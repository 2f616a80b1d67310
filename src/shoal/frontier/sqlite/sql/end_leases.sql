DELETE FROM lease WHERE task IN (SELECT value FROM json_each(:tasks))
