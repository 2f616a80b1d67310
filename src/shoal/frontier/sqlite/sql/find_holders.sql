-- Workers of one machine that hold leases. There are never more leases than requests in flight: they are looked through.
SELECT json_group_array(json_array(w.id, w.pid, w.pid_started, w.notebook))
FROM worker AS w
WHERE w.machine = :machine AND w.id IN (SELECT worker FROM lease)
