SELECT json_group_array(json_array(t.id, t.run, t.url, t.extra, t.expires_at))
FROM json_each(:tasks) AS j CROSS JOIN task AS t ON t.id = j.value
