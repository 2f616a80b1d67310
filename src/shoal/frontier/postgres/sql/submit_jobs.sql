-- The verb `submit`: jobs with their tasks, all in one transaction. No two of them have the same id, or owner and key.
-- One row per job, in their order. Those who submit take turns, so that places, keys and quotas are what they seem.
-- _scraper … _lanes: the kinds of runs among them; _kind: which of them a job is. _busy: it has tasks. _most, _window: its
-- quota. _job_of: the position of the job that a task belongs to.
CREATE FUNCTION submit_jobs(
    _now bigint,
    _scraper text[], _mode text[], _queue text[], _policy text[], _delay bigint[], _site_delay bigint[],
    _concurrency int[], _pool text[], _lease bigint[], _hard_timeout bigint[], _limit_exits int[], _limit_window bigint[],
    _crashes int[], _results_ttl bigint[], _lanes text[],
    _kind int[], _run_id text[], _input bytea[], _busy boolean[], _owner text[], _key text[], _fingerprint bytea[],
    _most bigint[], _window bigint[], _groups text[], _error text[], _callback bytea[],
    _job_of int[], _url text[], _site text[], _seen bytea[], _lane text[], _handler text[], _priority int[], _depth int[],
    _wait bigint[], _ttl bigint[], _extra text[]
) RETURNS TABLE (job_id text, admission text, place bigint, fingerprint bytea, used bigint, resets_at bigint)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    _known int[];
    _number int[];
    _used bigint[];
    _resets_at bigint[];
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('shoal submit'), 'job'::regclass::oid::int);
    _now := moment(_now);
    LOCK TABLE tally_change IN ROW EXCLUSIVE MODE;
    _known := ARRAY(
        SELECT coalesce(r.id, k.run)
        FROM unnest(_run_id, _owner, _key) WITH ORDINALITY AS u (run_id, owner, key, nth)
        LEFT JOIN LATERAL (SELECT run.id FROM run WHERE run.run_id = u.run_id OFFSET 0) AS r ON true
        LEFT JOIN LATERAL (
            SELECT job.run FROM job WHERE job.owner = u.owner AND job.key = u.key AND job.key IS NOT NULL OFFSET 0
        ) AS k ON true
        ORDER BY u.nth);
    IF cardinality(_most) > 0 THEN
        SELECT s.used, s.resets_at INTO _used, _resets_at FROM spend(_now, _known, _owner, _most, _window) AS s;
    END IF;
    _number := ARRAY(
        SELECT CASE WHEN u.known IS NULL AND (u.used > u.most) IS NOT TRUE THEN nextval('run_id_seq')::int END
        FROM unnest(_known, _used, _most) WITH ORDINALITY AS u (known, used, most, nth));
    INSERT INTO run (id, is_job, sealed, run_id, scraper, mode, state, queue, policy, input, created_at, ended_at,
                     results_until, delay, site_delay, concurrency, pool, lease, hard_timeout, limit_exits, limit_window,
                     crashes, results_ttl, lanes)
    OVERRIDING SYSTEM VALUE
    SELECT u.number, true, true, u.run_id, _scraper[u.kind], _mode[u.kind],
           CASE WHEN u.busy THEN 'running' ELSE 'finished' END, _queue[u.kind], _policy[u.kind], u.input, _now,
           CASE WHEN NOT u.busy THEN _now END, CASE WHEN NOT u.busy THEN _now + _results_ttl[u.kind] END, _delay[u.kind],
           _site_delay[u.kind], _concurrency[u.kind], _pool[u.kind], _lease[u.kind], _hard_timeout[u.kind],
           _limit_exits[u.kind], _limit_window[u.kind], _crashes[u.kind], _results_ttl[u.kind], _lanes[u.kind]::jsonb
    FROM unnest(_number, _kind, _run_id, _input, _busy) AS u (number, kind, run_id, input, busy)
    WHERE u.number IS NOT NULL;
    INSERT INTO job (run, owner, key, fingerprint, groups, error, callback)
    SELECT u.number, u.owner, u.key, u.fingerprint, coalesce(u.groups, '[]'), u.error, u.callback
    FROM unnest(_number, _owner, _key, _fingerprint, _groups, _error, _callback)
         AS u (number, owner, key, fingerprint, groups, error, callback)
    WHERE u.number IS NOT NULL;
    IF cardinality(_url) > 0 THEN
        PERFORM fill_jobs(_now, _number, _job_of, _url, _site, _seen, _lane, _handler, _priority, _depth, _wait, _ttl,
                          _extra);
    END IF;
    PERFORM lower_floors(_now);
    RETURN QUERY
    SELECT * FROM places_of_jobs(_known, _number, _kind, _queue, _run_id, _busy, _fingerprint, _used, _most, _resets_at);
END
$$;
