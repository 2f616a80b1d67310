-- Nothing of this line is ready at these sites any more.
DELETE FROM visit WHERE line = :line AND site IN (SELECT value FROM json_each(:sites))
