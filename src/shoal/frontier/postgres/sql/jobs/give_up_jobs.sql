-- entry: verb
-- The verb `give_up`: the first jobs of a queue, at most so many, that came _age ago or earlier and have not ended, are told
-- why they will be. Answers their ids.
CREATE FUNCTION give_up_jobs(_now bigint, _queue text, _age bigint, _reason text, _most int) RETURNS TABLE (job_id text)
LANGUAGE plpgsql
AS $$
BEGIN
    _now := moment(_now);
    RETURN QUERY
    UPDATE job SET error = _reason
    FROM (
        SELECT r.id, r.run_id, r.created_at FROM run AS r
        WHERE r.is_job AND r.ended_at IS NULL AND r.queue = _queue
        ORDER BY r.id
        LIMIT _most
    ) AS w
    WHERE job.run = w.id AND w.created_at <= _now - _age
    RETURNING w.run_id;
END
$$;
