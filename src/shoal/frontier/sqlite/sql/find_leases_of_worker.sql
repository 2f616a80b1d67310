-- What one worker holds. There are never more leases than requests in flight: they are looked through.
SELECT json_group_array(json_array(r.run_id, l.task, l.token))
FROM lease AS l
CROSS JOIN run AS r ON r.id = l.run
WHERE l.worker = :worker
