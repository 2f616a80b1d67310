-- A slot of these sites has come free: whoever waits for the site may come as early as that.
UPDATE visit
SET due_at = j.column2
FROM (VALUES (?, ?)) AS j
WHERE visit.site = j.column1 AND visit.due_at > j.column2
