-- When anything in these lines can next be due: a visit (of those in `visited`), or a task that waits for its time.
SELECT json_array(
    (SELECT min((SELECT due_at FROM visit WHERE line = j.value ORDER BY due_at LIMIT 1)) FROM json_each(:visited) AS j),
    (SELECT min((SELECT not_before FROM task WHERE state = 1 AND line = j.value ORDER BY not_before LIMIT 1))
     FROM json_each(:lines) AS j)
)
