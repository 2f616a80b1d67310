-- entry: look
-- Jobs by id, unless their version is the one that is known. It counts the tasks that have ended, and the steps of a job's
-- life: queued, processing, paused, finished, cancelled, gone. Most of those that are asked for have not changed, and no
-- more is read of them than shows that.
CREATE FUNCTION read_jobs(_now bigint, _id text[], _known bigint[])
RETURNS TABLE (
    job_id text, number int, version bigint, scraper text, owner text, state text, created_at bigint, ended_at bigint,
    expires_at bigint, place bigint, groups text, groups_left bigint, error text, expired boolean, counts bigint[]
)
LANGUAGE plpgsql
SET enable_nestloop = off SET enable_seqscan = off SET enable_mergejoin = off SET jit = off
SET plan_cache_mode = force_generic_plan
AS $$
#variable_conflict use_column
BEGIN
    _now := moment(_now);
    RETURN QUERY
    WITH changes AS MATERIALIZED (
        SELECT d.run, sum(d.leased + d.requests) AS begun,
               sum(d.done + d.dead + d.expired + d.dropped + d.cancelled) AS ended
        FROM tally_change AS d
        WHERE d.xid >= (SELECT g.upto FROM ledger AS g)
        GROUP BY d.run
    ), asked AS (
        SELECT r.*, u.known, b.gone_at IS NOT NULL OR (r.results_until <= _now) IS TRUE AS expired,
               coalesce(t.begun, 0) + coalesce(d.begun, 0) > 0 AS begun,
               (coalesce(t.ended, 0) + coalesce(d.ended, 0))::bigint AS ended
        FROM unnest(_id, _known) AS u (run_id, known)
        CROSS JOIN LATERAL (
            SELECT run.id, run.run_id, run.state, run.scraper, run.queue, run.created_at, run.ended_at, run.results_until
            FROM run WHERE run.run_id = u.run_id AND run.is_job OFFSET 0) AS r
        CROSS JOIN LATERAL (
            SELECT sum(t.leased + t.requests) AS begun,
                   sum(t.done + t.dead + t.expired + t.dropped + t.cancelled) AS ended
            FROM tally AS t WHERE t.run = r.id) AS t
        LEFT JOIN LATERAL (
            SELECT job.gone_at FROM job WHERE job.run = r.id AND r.ended_at IS NOT NULL OFFSET 0) AS b ON true
        LEFT JOIN changes AS d ON d.run = r.id
    ), news AS MATERIALIZED (
        SELECT n.*
        FROM (
            SELECT a.*, 8 * a.ended + CASE
                       WHEN a.expired THEN 5
                       WHEN a.state = 'cancelled' THEN 4
                       WHEN a.state = 'finished' THEN 3
                       WHEN a.state = 'paused' THEN 2
                       ELSE a.begun::int
                   END AS version
            FROM asked AS a
        ) AS n
        WHERE n.version <> n.known
    ), books AS (
        SELECT t.* FROM news AS n CROSS JOIN LATERAL (SELECT * FROM tally WHERE tally.run = n.id OFFSET 0) AS t
        UNION ALL
        SELECT d.run, d.line, d.waiting, d.leased, d.live, d.done, d.dead, d.expired, d.dropped, d.cancelled, d.items,
               d.requests, d.received, d.retries, d.snoozes, d.crashes, d.duplicates, d.refused, d.late, d.saved_requests,
               d.saved_bytes
        FROM tally_change AS d JOIN news AS n ON n.id = d.run
        WHERE d.xid >= (SELECT g.upto FROM ledger AS g)
    ), counted AS MATERIALIZED (
        SELECT b.run,
               ARRAY[sum(b.waiting), sum(b.leased), sum(b.done), sum(b.dead), sum(b.expired), sum(b.dropped),
                     sum(b.cancelled), sum(b.items), sum(b.requests), sum(b.received), sum(b.retries), sum(b.snoozes),
                     sum(b.crashes), sum(b.duplicates), sum(b.refused), sum(b.late), sum(b.saved_requests),
                     sum(b.saved_bytes)]::bigint[] AS counts
        FROM books AS b
        GROUP BY b.run
    ), queues AS MATERIALIZED (
        SELECT q.queue, ARRAY(SELECT w.id FROM run AS w WHERE w.is_job AND w.ended_at IS NULL AND w.queue = q.queue
                              ORDER BY w.id) AS waiting
        FROM (SELECT DISTINCT n.queue FROM news AS n WHERE n.ended_at IS NULL) AS q
    )
    SELECT n.run_id, n.id, n.version, n.scraper, b.owner, n.state, n.created_at, n.ended_at, n.results_until,
           CASE WHEN n.ended_at IS NULL THEN width_bucket(n.id, q.waiting)::bigint ELSE 0 END, b.groups,
           CASE WHEN b.groups = '[]' THEN 0
                ELSE (SELECT count(DISTINCT t.part) FROM task AS t WHERE t.run = n.id AND t.part > '') END,
           b.error, n.expired, coalesce(c.counts, array_fill(0::bigint, ARRAY[18]))
    FROM news AS n
    CROSS JOIN LATERAL (SELECT * FROM job WHERE job.run = n.id OFFSET 0) AS b
    LEFT JOIN counted AS c ON c.run = n.id
    LEFT JOIN queues AS q ON q.queue = n.queue;
END
$$;
