SELECT r.run_id, i.url, i.grouping, i.body
FROM json_each(:ids) AS k
CROSS JOIN run AS r ON r.run_id = k.value AND r.is_job AND (r.results_until IS NULL OR r.results_until > :now)
LEFT JOIN item AS i ON i.run = r.id
ORDER BY k.key, i.id
