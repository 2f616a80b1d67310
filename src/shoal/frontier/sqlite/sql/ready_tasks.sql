UPDATE task SET state = 0, not_before = NULL WHERE id IN (SELECT value FROM json_each(:tasks))
