SELECT json_group_array(json_array(s.key, s.id)) FROM json_each(:sites) AS j CROSS JOIN site AS s ON s.key = j.value
