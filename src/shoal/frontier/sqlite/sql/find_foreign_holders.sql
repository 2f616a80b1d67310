-- Workers that hold leases and did not call this machine by the name it has now.
SELECT json_group_array(json_array(w.id, w.machine))
FROM worker AS w
WHERE w.machine != :machine AND w.id IN (SELECT worker FROM lease)
