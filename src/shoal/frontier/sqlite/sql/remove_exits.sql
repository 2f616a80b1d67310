DELETE FROM exit WHERE name IN (SELECT value FROM json_each(:names))
