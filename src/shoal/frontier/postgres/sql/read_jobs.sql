-- Jobs by id, unless their version is the one that is known. It counts the tasks that have ended, and the steps of a job's
-- life: queued, processing, paused, finished, cancelled, gone.
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
        SELECT d.run, sum(d.waiting) AS waiting, sum(d.leased) AS leased, sum(d.done) AS done, sum(d.dead) AS dead,
               sum(d.expired) AS expired, sum(d.dropped) AS dropped, sum(d.cancelled) AS cancelled, sum(d.items) AS items,
               sum(d.requests) AS requests, sum(d.received) AS received, sum(d.retries) AS retries,
               sum(d.snoozes) AS snoozes, sum(d.crashes) AS crashes, sum(d.duplicates) AS duplicates,
               sum(d.refused) AS refused, sum(d.late) AS late, sum(d.saved_requests) AS saved_requests,
               sum(d.saved_bytes) AS saved_bytes
        FROM tally_change AS d
        WHERE d.xid >= (SELECT g.upto FROM ledger AS g)
        GROUP BY d.run
    ), counted AS MATERIALIZED (
        SELECT r.*, u.known,
               ARRAY[coalesce(t.waiting, 0) + coalesce(d.waiting, 0), coalesce(t.leased, 0) + coalesce(d.leased, 0),
                     coalesce(t.done, 0) + coalesce(d.done, 0), coalesce(t.dead, 0) + coalesce(d.dead, 0),
                     coalesce(t.expired, 0) + coalesce(d.expired, 0), coalesce(t.dropped, 0) + coalesce(d.dropped, 0),
                     coalesce(t.cancelled, 0) + coalesce(d.cancelled, 0), coalesce(t.items, 0) + coalesce(d.items, 0),
                     coalesce(t.requests, 0) + coalesce(d.requests, 0), coalesce(t.received, 0) + coalesce(d.received, 0),
                     coalesce(t.retries, 0) + coalesce(d.retries, 0), coalesce(t.snoozes, 0) + coalesce(d.snoozes, 0),
                     coalesce(t.crashes, 0) + coalesce(d.crashes, 0),
                     coalesce(t.duplicates, 0) + coalesce(d.duplicates, 0),
                     coalesce(t.refused, 0) + coalesce(d.refused, 0),
                     coalesce(t.late, 0) + coalesce(d.late, 0),
                     coalesce(t.saved_requests, 0) + coalesce(d.saved_requests, 0),
                     coalesce(t.saved_bytes, 0) + coalesce(d.saved_bytes, 0)]::bigint[] AS counts
        FROM unnest(_id, _known) AS u (run_id, known)
        CROSS JOIN LATERAL (
            SELECT run.id, run.run_id, run.state, run.scraper, run.queue, run.created_at, run.ended_at, run.results_until
            FROM run WHERE run.run_id = u.run_id AND run.is_job OFFSET 0) AS r
        CROSS JOIN LATERAL (
            SELECT sum(t.waiting) AS waiting, sum(t.leased) AS leased, sum(t.done) AS done, sum(t.dead) AS dead,
                   sum(t.expired) AS expired, sum(t.dropped) AS dropped, sum(t.cancelled) AS cancelled,
                   sum(t.items) AS items, sum(t.requests) AS requests, sum(t.received) AS received,
                   sum(t.retries) AS retries, sum(t.snoozes) AS snoozes, sum(t.crashes) AS crashes,
                   sum(t.duplicates) AS duplicates, sum(t.refused) AS refused, sum(t.late) AS late,
                   sum(t.saved_requests) AS saved_requests, sum(t.saved_bytes) AS saved_bytes
            FROM tally AS t WHERE t.run = r.id) AS t
        LEFT JOIN changes AS d ON d.run = r.id
    ), news AS MATERIALIZED (
        SELECT *
        FROM (
            SELECT c.*, b.owner, b.groups, b.error, b.gone_at IS NOT NULL OR (c.results_until <= _now) IS TRUE AS expired,
                   8 * (c.counts[3] + c.counts[4] + c.counts[5] + c.counts[6] + c.counts[7]) + CASE
                       WHEN b.gone_at IS NOT NULL OR c.results_until <= _now THEN 5
                       WHEN c.state = 'cancelled' THEN 4
                       WHEN c.state = 'finished' THEN 3
                       WHEN c.state = 'paused' THEN 2
                       ELSE (c.counts[2] + c.counts[9] > 0)::int
                   END AS version
            FROM counted AS c
            CROSS JOIN LATERAL (SELECT * FROM job WHERE job.run = c.id OFFSET 0) AS b
        ) AS c
        WHERE c.version <> c.known
    ), queues AS MATERIALIZED (
        SELECT q.queue, ARRAY(SELECT w.id FROM run AS w WHERE w.is_job AND w.ended_at IS NULL AND w.queue = q.queue
                              ORDER BY w.id) AS waiting
        FROM (SELECT DISTINCT n.queue FROM news AS n WHERE n.ended_at IS NULL) AS q
    )
    SELECT n.run_id, n.id, n.version, n.scraper, n.owner, n.state, n.created_at, n.ended_at, n.results_until,
           CASE WHEN n.ended_at IS NULL THEN width_bucket(n.id, q.waiting)::bigint ELSE 0 END, n.groups,
           CASE WHEN n.groups = '[]' THEN 0
                ELSE (SELECT count(DISTINCT t.part) FROM task AS t WHERE t.run = n.id AND t.part > '') END,
           n.error, n.expired, n.counts
    FROM news AS n LEFT JOIN queues AS q ON q.queue = n.queue;
END
$$;
