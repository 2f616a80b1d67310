-- entry: verb
-- What one worker holds. There are never more leases than requests in flight: they are looked through.
CREATE FUNCTION find_leases(_worker_id text)
RETURNS TABLE (run_id text, task bigint, token bigint)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT r.run_id, t.id, t.token
    FROM task AS t
    CROSS JOIN LATERAL (SELECT run.run_id FROM run WHERE run.id = t.run OFFSET 0) AS r
    WHERE t.state = 2 AND t.lease_until > 0 AND t.worker = (SELECT w.id FROM worker AS w WHERE w.worker_id = _worker_id);
END
$$;
