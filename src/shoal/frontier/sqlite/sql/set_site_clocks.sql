UPDATE site
SET begun_at = j.column2, begun_before = j.column3, last_token = j.column4
FROM (VALUES (?, ?, ?, ?)) AS j
WHERE site.id = j.column1
