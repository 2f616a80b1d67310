UPDATE task SET state = 2 WHERE id IN (SELECT value FROM json_each(:tasks))
