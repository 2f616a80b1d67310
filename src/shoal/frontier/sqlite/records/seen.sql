-- name: find_seen
-- Which of these keys are in the sorted table. `keys` is 10 bytes per key.
SELECT json_group_array(j.value)
FROM json_each(:indices) AS j
WHERE EXISTS (SELECT 1 FROM seen WHERE run = :run AND key = substr(:keys, 1 + 10 * j.value, 10))

-- name: append_keys
-- Note keys that a run has seen, behind those of late.
INSERT INTO seen_lately (run, keys) VALUES (:run, :keys)

-- name: read_keys
-- The keys that were appended after a row.
SELECT id, run, keys FROM seen_lately WHERE id > :after ORDER BY id

-- name: sort_in_keys
-- Move keys to the sorted table. Those that are there already stay.
INSERT OR IGNORE INTO seen (run, key) VALUES (?, ?)

-- name: delete_keys
-- Forget appended rows, once all of their keys are in the sorted table.
DELETE FROM seen_lately WHERE id <= :until

-- name: find_round
-- How many slices have been sorted in, and up to which row this round goes.
SELECT json_array(sorted, until) FROM seen_round

-- name: set_round
-- Write that down.
INSERT INTO seen_round (id, sorted, until) VALUES (1, :sorted, :until)
ON CONFLICT (id) DO UPDATE SET sorted = excluded.sorted, until = excluded.until
