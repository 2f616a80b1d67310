UPDATE line
SET waiting = waiting + (j.value ->> 1), leased = leased + (j.value ->> 2)
FROM json_each(:rows) AS j
WHERE line.id = j.value ->> 0
