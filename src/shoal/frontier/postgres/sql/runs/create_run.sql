-- entry: verb
-- The verb `create_run`: nothing, if there is a run of that id.
CREATE FUNCTION create_run(_now bigint, _run run_fields) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    INSERT INTO run (run_id, scraper, mode, state, queue, policy, input, created_at, delay, site_delay, concurrency, pool,
                     lease, hard_timeout, limit_exits, limit_window, crashes, results_ttl, lanes)
    SELECT _run.run_id, _run.scraper, _run.mode, 'open', _run.queue, _run.policy, _run.input, moment(_now), _run.delay,
           _run.site_delay, _run.concurrency, _run.pool, _run.lease, _run.hard_timeout, _run.limit_exits, _run.limit_window,
           _run.crashes, _run.results_ttl, _run.lanes::jsonb
    WHERE NOT EXISTS (SELECT 1 FROM run AS r WHERE r.run_id = _run.run_id)
    ON CONFLICT (run_id) DO NOTHING;
END
$$;
