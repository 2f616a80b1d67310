-- Which of these keys the run has not seen. `keys` is 32 bytes per key.
SELECT json_group_array(j.value)
FROM json_each(:indices) AS j
WHERE NOT EXISTS (SELECT 1 FROM seen WHERE run = :run AND key = substr(:keys, 1 + 32 * j.value, 32))
