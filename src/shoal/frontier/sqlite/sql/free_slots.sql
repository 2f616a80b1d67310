UPDATE slot
SET live = live - (j.value ->> 2), begun_at = j.value ->> 3, begun_before = j.value ->> 4,
    blocked_until = j.value ->> 5, penalty = j.value ->> 6
FROM json_each(:slots) AS j
WHERE slot.site = j.value ->> 0 AND slot.exit = j.value ->> 1
