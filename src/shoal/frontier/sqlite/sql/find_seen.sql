-- Which of these keys are in the sorted table. `keys` is 10 bytes per key.
SELECT json_group_array(j.value)
FROM json_each(:indices) AS j
WHERE EXISTS (SELECT 1 FROM seen WHERE run = :run AND key = substr(:keys, 1 + 10 * j.value, 10))
