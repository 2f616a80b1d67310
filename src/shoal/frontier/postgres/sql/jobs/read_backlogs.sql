-- entry: look
-- The jobs of each queue: how many have not ended, and how many have since then.
CREATE FUNCTION read_backlogs(_now bigint, _lately bigint) RETURNS TABLE (queue text, unfinished bigint, ended bigint)
LANGUAGE plpgsql
AS $$
BEGIN
    _now := moment(_now);
    RETURN QUERY
    SELECT b.queue, sum(b.unfinished)::bigint, sum(b.ended)::bigint
    FROM (
        SELECT r.queue, count(*) AS unfinished, 0 AS ended FROM run AS r
        WHERE r.is_job AND r.ended_at IS NULL
        GROUP BY r.queue
        UNION ALL
        SELECT r.queue, 0, count(*) FROM run AS r
        WHERE r.is_job AND r.ended_at IS NOT NULL AND r.ended_at > _now - _lately
        GROUP BY r.queue
    ) AS b
    GROUP BY b.queue;
END
$$;
