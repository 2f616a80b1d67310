UPDATE task SET state = 3 WHERE id IN (SELECT value FROM json_each(:tasks))
