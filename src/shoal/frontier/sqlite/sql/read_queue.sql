-- The jobs of a queue that have not ended, in the order they came.
SELECT json_group_array(id)
FROM (SELECT id FROM run WHERE is_job AND ended_at IS NULL AND queue = :queue ORDER BY id)
