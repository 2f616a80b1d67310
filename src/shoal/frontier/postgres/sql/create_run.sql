-- The verb `create_run`: nothing, if there is a run of that id.
CREATE FUNCTION create_run(
    _now bigint, _run_id text, _scraper text, _mode text, _queue text, _policy text, _input bytea, _delay bigint,
    _site_delay bigint, _concurrency int, _pool text, _lease bigint, _hard_timeout bigint, _limit_exits int,
    _limit_window bigint, _crashes int,
    _results_ttl bigint, _lanes text
) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    INSERT INTO run (run_id, scraper, mode, state, queue, policy, input, created_at, delay, site_delay, concurrency, pool,
                     lease, hard_timeout, limit_exits, limit_window, crashes, results_ttl, lanes)
    SELECT _run_id, _scraper, _mode, 'open', _queue, _policy, _input, moment(_now), _delay, _site_delay, _concurrency,
           _pool, _lease, _hard_timeout, _limit_exits, _limit_window, _crashes, _results_ttl, _lanes::jsonb
    WHERE NOT EXISTS (SELECT 1 FROM run AS r WHERE r.run_id = _run_id)
    ON CONFLICT (run_id) DO NOTHING;
END
$$;
