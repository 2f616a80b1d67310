-- entry: look
-- Workers that hold leases or were seen within the last hour, the latest first, each with some tasks that it has in hand.
CREATE FUNCTION read_workers(_now bigint, _most int)
RETURNS TABLE (
    worker_id text, machine text, pid bigint, pid_started bigint, notebook text, duties text, seen_at bigint,
    leases bigint, silent bigint, tasks text
)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
BEGIN
    _now := moment(_now);
    RETURN QUERY
    WITH held AS (
        SELECT t.worker, t.run, t.line, t.url, row_number() OVER (PARTITION BY t.worker ORDER BY t.id) AS nth,
               count(*) OVER (PARTITION BY t.worker) AS leases
        FROM task AS t
        WHERE t.state = 2
    ), shown AS (
        SELECT h.worker, max(h.leases) AS leases, json_agg(json_build_array(r.run_id, l.lane, h.url)) AS tasks
        FROM held AS h
        JOIN run AS r ON r.id = h.run
        JOIN line AS l ON l.id = h.line
        WHERE h.nth <= _most
        GROUP BY h.worker
    )
    SELECT w.worker_id, w.machine, w.pid, w.pid_started, w.notebook, w.duties, w.seen_at, coalesce(s.leases, 0),
           _now - w.seen_at, coalesce(s.tasks, '[]')::text
    FROM worker AS w
    LEFT JOIN shown AS s ON s.worker = w.id
    WHERE s.leases > 0 OR w.seen_at > _now - {{WORKER_KEPT}}
    ORDER BY w.seen_at DESC;
END
$$;
