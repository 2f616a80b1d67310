-- Workers of one machine that hold leases.
SELECT json_group_array(json_array(w.id, w.pid, w.pid_started, w.notebook))
FROM worker AS w
WHERE w.machine = :machine AND EXISTS (SELECT 1 FROM lease WHERE worker = w.id)
