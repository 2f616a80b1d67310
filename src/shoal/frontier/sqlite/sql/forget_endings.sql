-- `names`: one behind the other, 8 bytes each.
DELETE FROM ending WHERE run = :run AND name IN (SELECT substr(:names, j.value, 8) FROM json_each(:starts) AS j)
