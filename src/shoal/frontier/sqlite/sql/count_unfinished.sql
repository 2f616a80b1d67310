-- The jobs of a queue that have not ended, up to one of them.
SELECT count(*) FROM run WHERE is_job AND ended_at IS NULL AND queue = :queue AND id <= :up_to
