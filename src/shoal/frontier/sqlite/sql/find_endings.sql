-- How a page ended in each of these runs, where it was not done; the last ending first.
SELECT e.run, e.state, e.ended_at, e.reason, e.url
FROM json_each(:runs) AS j CROSS JOIN ending AS e ON e.run = j.value AND e.name IN (:first, :second)
ORDER BY e.ended_at DESC
