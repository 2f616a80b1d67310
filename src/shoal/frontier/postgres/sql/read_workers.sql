-- Workers that hold leases or were seen within the last hour, the latest first.
CREATE FUNCTION read_workers(_now bigint)
RETURNS TABLE (
    worker_id text, machine text, pid bigint, pid_started bigint, notebook text, seen_at bigint, leases bigint
)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT w.worker_id, w.machine, w.pid, w.pid_started, w.notebook, w.seen_at, coalesce(h.leases, 0)
    FROM worker AS w
    LEFT JOIN (SELECT t.worker, count(*) AS leases FROM task AS t WHERE t.state = 2 GROUP BY t.worker) AS h
        ON h.worker = w.id
    WHERE h.leases > 0 OR w.seen_at > moment(_now) - 3600000
    ORDER BY w.seen_at DESC;
END
$$;
