-- What became of each of the jobs that were submitted, and its place among those of its queue that have not ended.
-- _known: the number of the one that was there before, _number: of the one that was made, _queue: by kind.
CREATE FUNCTION answer_submitted(
    _known int[], _number int[], _kind int[], _queue text[], _run_id text[], _busy boolean[], _fingerprint bytea[],
    _used bigint[], _most bigint[], _resets_at bigint[]
) RETURNS TABLE (job_id text, admission text, place bigint, fingerprint bytea, used bigint, resets_at bigint)
LANGUAGE plpgsql SET enable_hashjoin = on
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH asked AS MATERIALIZED (
        SELECT u.*, _queue[u.kind] AS queue, u.number IS NOT NULL AND u.busy AS waits
        FROM unnest(_known, _number, _kind, _run_id, _busy, _fingerprint, _used, _most, _resets_at) WITH ORDINALITY
             AS u (known, number, kind, run_id, busy, fingerprint, used, most, resets_at, nth)
    ), queues AS MATERIALIZED (
        SELECT q.queue, w.many - q.new AS before
        FROM (SELECT a.queue, count(*) AS new FROM asked AS a WHERE a.waits GROUP BY a.queue) AS q
        CROSS JOIN LATERAL (
            SELECT count(*) AS many FROM run WHERE run.is_job AND run.ended_at IS NULL AND run.queue = q.queue OFFSET 0) AS w
    )
    SELECT coalesce(r.run_id, a.run_id),
           CASE WHEN a.known IS NOT NULL THEN 'repeated' WHEN a.number IS NULL THEN 'limited' ELSE 'created' END,
           CASE WHEN a.known IS NOT NULL THEN coalesce(w.many, 0)
                WHEN a.waits THEN q.before + row_number() OVER (PARTITION BY a.queue, a.waits ORDER BY a.nth)
                ELSE 0 END,
           CASE WHEN a.known IS NOT NULL THEN coalesce(b.fingerprint, '') WHEN a.number IS NOT NULL THEN a.fingerprint
                ELSE '' END,
           coalesce(least(a.used, a.most), 0), coalesce(a.resets_at, 0)
    FROM asked AS a
    LEFT JOIN queues AS q ON q.queue = a.queue
    LEFT JOIN LATERAL (
        SELECT run.run_id, run.id, run.queue, run.ended_at FROM run WHERE run.id = a.known OFFSET 0) AS r ON true
    LEFT JOIN LATERAL (SELECT job.fingerprint FROM job WHERE job.run = a.known OFFSET 0) AS b ON true
    LEFT JOIN LATERAL (
        SELECT count(*) AS many FROM run
        WHERE run.is_job AND run.ended_at IS NULL AND run.queue = r.queue AND run.id <= r.id AND r.ended_at IS NULL
        OFFSET 0) AS w ON r.id IS NOT NULL
    ORDER BY a.nth;
END
$$;
