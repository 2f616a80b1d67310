SELECT json_group_array(l.token)
FROM json_each(:leases) AS j
CROSS JOIN lease AS l ON l.task = j.value ->> 0 AND l.token = j.value ->> 1
CROSS JOIN run AS r ON r.id = l.run
WHERE r.state != 'cancelled'
