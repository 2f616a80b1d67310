-- Make a run that comes from another store, paused, with room for the numbers of its tasks. Answers what to add to those.
-- Raises SH409 = there is a run of that id. All who number tasks hold a lock on `tally_change`.
CREATE FUNCTION arrive_run(
    _run_id text, _scraper text, _mode text, _queue text, _policy text, _input bytea, _delay bigint,
    _site_delay bigint, _concurrency int, _pool text, _lease bigint, _hard_timeout bigint, _limit_exits int,
    _limit_window bigint, _crashes int,
    _results_ttl bigint, _lanes text, _created_at bigint, _sealed boolean, _move text, _low bigint, _high bigint
) RETURNS bigint
LANGUAGE plpgsql
AS $$
DECLARE
    _last bigint;
BEGIN
    LOCK TABLE tally_change IN SHARE ROW EXCLUSIVE MODE;
    INSERT INTO run (run_id, scraper, mode, state, queue, policy, input, created_at, delay, site_delay, concurrency, pool,
                     lease, hard_timeout, limit_exits, limit_window, crashes, results_ttl, lanes, sealed, move)
    VALUES (_run_id, _scraper, _mode, 'paused', _queue, _policy, _input, _created_at, _delay, _site_delay, _concurrency,
            _pool, _lease, _hard_timeout, _limit_exits, _limit_window, _crashes, _results_ttl, _lanes::jsonb, _sealed, _move)
    ON CONFLICT (run_id) DO NOTHING;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'there is a run %', _run_id USING ERRCODE = 'SH409';
    END IF;
    SELECT CASE WHEN n.is_called THEN n.last_value ELSE n.last_value - 1 END INTO _last FROM task_number AS n;
    PERFORM setval('task_number', _last + _high - _low + 1);
    RETURN _last + 1 - _low;
END
$$;
