UPDATE exit SET probe = 0 WHERE probe > 0 AND probe IN (SELECT value FROM json_each(:tokens))
