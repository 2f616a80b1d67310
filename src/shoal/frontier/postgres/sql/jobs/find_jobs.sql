-- entry: look
-- The newest jobs: those of one owner (null = of all) whose number is below _before.
CREATE FUNCTION find_jobs(_owner text, _before bigint, _most int) RETURNS TABLE (job_id text)
LANGUAGE plpgsql
AS $$
BEGIN
    RETURN QUERY
    SELECT r.run_id
    FROM (
        (SELECT b.run FROM job AS b WHERE _owner IS NULL AND (_before IS NULL OR b.run < _before)
         ORDER BY b.run DESC LIMIT _most)
        UNION ALL
        (SELECT b.run FROM job AS b WHERE b.owner = _owner AND (_before IS NULL OR b.run < _before)
         ORDER BY b.run DESC LIMIT _most)
    ) AS b
    CROSS JOIN LATERAL (SELECT run.run_id FROM run WHERE run.id = b.run OFFSET 0) AS r;
END
$$;
