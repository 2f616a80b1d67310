-- What was seen lately and may contain this key.
SELECT l.run, l.keys FROM seen_lately AS l CROSS JOIN run AS r ON r.id = l.run
WHERE (:run_id IS NULL OR r.run_id = :run_id) AND instr(l.keys, :key) > 0
