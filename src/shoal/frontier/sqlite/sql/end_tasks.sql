DELETE FROM task WHERE id IN (SELECT value FROM json_each(:tasks))
