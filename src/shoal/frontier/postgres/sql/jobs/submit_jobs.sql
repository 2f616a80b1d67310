-- entry: verb
-- The verb `submit`: jobs with their tasks, all in one transaction. No two of them have the same id, or owner and key.
-- One row per job, in their order. Those who submit take turns, so that places, keys and quotas are what they seem.
-- _job_of: the position of the job that a task belongs to.
CREATE FUNCTION submit_jobs(
    _now bigint, _kinds run_kinds, _jobs new_jobs, _job_of int[], _tasks new_tasks
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
        FROM unnest(_jobs.run_id, _jobs.owner, _jobs.key) WITH ORDINALITY AS u (run_id, owner, key, nth)
        LEFT JOIN LATERAL (SELECT run.id FROM run WHERE run.run_id = u.run_id OFFSET 0) AS r ON true
        LEFT JOIN LATERAL (
            SELECT job.run FROM job WHERE job.owner = u.owner AND job.key = u.key AND job.key IS NOT NULL OFFSET 0
        ) AS k ON true
        ORDER BY u.nth);
    IF cardinality(_jobs.most) > 0 THEN
        SELECT s.used, s.resets_at INTO _used, _resets_at
        FROM spend_quota(_now, _known, _jobs.owner, _jobs.most, _jobs."window") AS s;
    END IF;
    _number := ARRAY(
        SELECT CASE WHEN u.known IS NULL AND (u.used > u.most) IS NOT TRUE THEN nextval('run_id_seq')::int END
        FROM unnest(_known, _used, _jobs.most) WITH ORDINALITY AS u (known, used, most, nth));
    INSERT INTO run (id, is_job, sealed, run_id, scraper, mode, state, queue, policy, input, created_at, ended_at,
                     results_until, delay, site_delay, concurrency, pool, lease, hard_timeout, limit_exits, limit_window,
                     crashes, results_ttl, lanes)
    OVERRIDING SYSTEM VALUE
    SELECT u.number, true, true, u.run_id, _kinds.scraper[u.kind], _kinds.mode[u.kind],
           CASE WHEN u.busy THEN 'running' ELSE 'finished' END, _kinds.queue[u.kind], _kinds.policy[u.kind], u.input, _now,
           CASE WHEN NOT u.busy THEN _now END, CASE WHEN NOT u.busy THEN _now + _kinds.results_ttl[u.kind] END,
           _kinds.delay[u.kind], _kinds.site_delay[u.kind], _kinds.concurrency[u.kind], _kinds.pool[u.kind],
           _kinds.lease[u.kind], _kinds.hard_timeout[u.kind], _kinds.limit_exits[u.kind], _kinds.limit_window[u.kind],
           _kinds.crashes[u.kind], _kinds.results_ttl[u.kind], _kinds.lanes[u.kind]::jsonb
    FROM unnest(_number, _jobs.kind, _jobs.run_id, _jobs.input, _jobs.busy) AS u (number, kind, run_id, input, busy)
    WHERE u.number IS NOT NULL;
    INSERT INTO job (run, owner, key, fingerprint, groups, error, callback)
    SELECT u.number, u.owner, u.key, u.fingerprint, coalesce(u.groups, '[]'), u.error, u.callback
    FROM unnest(_number, _jobs.owner, _jobs.key, _jobs.fingerprint, _jobs.groups, _jobs.error, _jobs.callback)
         AS u (number, owner, key, fingerprint, groups, error, callback)
    WHERE u.number IS NOT NULL;
    IF cardinality(_tasks.url) > 0 THEN
        PERFORM insert_job_tasks(_now, _number, _job_of, _tasks);
    END IF;
    PERFORM lower_floors(_now);
    RETURN QUERY
    SELECT *
    FROM answer_submitted(_known, _number, _jobs.kind, _kinds.queue, _jobs.run_id, _jobs.busy, _jobs.fingerprint, _used,
                          _jobs.most, _resets_at);
END
$$;
