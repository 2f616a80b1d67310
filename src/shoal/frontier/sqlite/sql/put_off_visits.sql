UPDATE visit
SET due_at = j.value ->> 2, ready = ready - (j.value ->> 3)
FROM json_each(:visits) AS j
WHERE visit.line = j.value ->> 0 AND visit.site = j.value ->> 1
