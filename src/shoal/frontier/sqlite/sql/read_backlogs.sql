SELECT queue, sum(unfinished), sum(ended)
FROM (
    SELECT queue, count(*) AS unfinished, 0 AS ended FROM run WHERE is_job AND ended_at IS NULL GROUP BY queue
    UNION ALL
    SELECT queue, 0, count(*) FROM run WHERE is_job AND ended_at IS NOT NULL AND ended_at > :since GROUP BY queue
)
GROUP BY queue
