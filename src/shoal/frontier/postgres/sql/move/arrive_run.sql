-- entry: verb
-- Make a run that comes from another store, paused, with room for the numbers of its tasks. Answers what to add to those.
-- Raises SH409 = there is a run of that id. All who number tasks hold a lock on `tally_change`.
CREATE FUNCTION arrive_run(
    _run run_fields, _created_at bigint, _sealed boolean, _move text, _low bigint, _high bigint
) RETURNS bigint
LANGUAGE plpgsql
AS $$
DECLARE
    _last bigint;
BEGIN
    LOCK TABLE tally_change IN SHARE ROW EXCLUSIVE MODE;
    INSERT INTO run (run_id, scraper, mode, state, queue, policy, input, created_at, delay, site_delay, concurrency, pool,
                     lease, hard_timeout, limit_exits, limit_window, crashes, results_ttl, lanes, sealed, move)
    VALUES (_run.run_id, _run.scraper, _run.mode, 'paused', _run.queue, _run.policy, _run.input, _created_at, _run.delay,
            _run.site_delay, _run.concurrency, _run.pool, _run.lease, _run.hard_timeout, _run.limit_exits, _run.limit_window,
            _run.crashes, _run.results_ttl, _run.lanes::jsonb, _sealed, _move)
    ON CONFLICT (run_id) DO NOTHING;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'there is a run %', _run.run_id USING ERRCODE = 'SH409';
    END IF;
    SELECT CASE WHEN n.is_called THEN n.last_value ELSE n.last_value - 1 END INTO _last FROM task_number AS n;
    PERFORM setval('task_number', _last + _high - _low + 1);
    RETURN _last + 1 - _low;
END
$$;
