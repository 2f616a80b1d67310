UPDATE slot
SET live = live - (j.value ->> 2), next_at = j.value ->> 3, blocked_until = j.value ->> 4, penalty = j.value ->> 5
FROM json_each(:slots) AS j
WHERE slot.site = j.value ->> 0 AND slot.exit = j.value ->> 1
