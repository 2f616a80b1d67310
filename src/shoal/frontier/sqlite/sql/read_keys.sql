SELECT id, run, keys FROM seen_lately WHERE id > :after ORDER BY id
