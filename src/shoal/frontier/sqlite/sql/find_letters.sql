SELECT json_group_array(json_array(d.run, d.url, d.extra, d.reason, d.died_at))
FROM json_each(:tasks) AS j CROSS JOIN dead AS d ON d.task = j.value
