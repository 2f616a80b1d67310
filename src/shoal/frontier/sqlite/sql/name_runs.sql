SELECT json_group_array(json_array(r.id, r.run_id, r.state)) FROM json_each(:runs) AS j CROSS JOIN run AS r ON r.id = j.value
