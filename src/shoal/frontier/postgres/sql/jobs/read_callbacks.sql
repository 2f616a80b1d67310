-- entry: look
-- The callbacks of jobs that have ended, those that came first first.
CREATE FUNCTION read_callbacks(_most int) RETURNS TABLE (job_id text, body bytea)
LANGUAGE plpgsql
AS $$
BEGIN
    RETURN QUERY
    SELECT r.run_id, b.callback
    FROM job AS b
    CROSS JOIN LATERAL (SELECT run.run_id FROM run WHERE run.id = b.run AND run.ended_at IS NOT NULL OFFSET 0) AS r
    WHERE b.callback IS NOT NULL
    ORDER BY b.run
    LIMIT _most;
END
$$;
