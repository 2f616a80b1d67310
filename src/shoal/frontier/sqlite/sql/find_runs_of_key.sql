-- The runs that have seen this key, newest first, as far as it is in the sorted table.
SELECT r.id FROM run AS r
WHERE (:run_id IS NULL OR r.run_id = :run_id) AND EXISTS (SELECT 1 FROM seen WHERE run = r.id AND key = :key)
