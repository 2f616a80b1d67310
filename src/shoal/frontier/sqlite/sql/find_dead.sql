SELECT json_group_array(json_array(d.task, d.line, d.site, s.key))
FROM dead AS d CROSS JOIN site AS s ON s.id = d.site
WHERE d.run = :run AND (:tasks IS NULL OR d.task IN (SELECT value FROM json_each(:tasks)))
