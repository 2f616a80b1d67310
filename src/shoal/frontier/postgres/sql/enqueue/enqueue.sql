-- entry: verb
-- The verb `enqueue`. Errors: SH404 = no such run, SH410 = it was cancelled, SH423 and SH425 as refuse_moving.
CREATE FUNCTION enqueue(
    _now bigint, _run_id text, _tasks new_tasks, OUT accepted int, OUT duplicates int
)
LANGUAGE plpgsql
AS $$
DECLARE
    _run run;
    _runs int[];
    _fresh boolean[];
    _sites int[];
    _tighten boolean;
BEGIN
    _now := moment(_now);
    PERFORM pg_current_xact_id();  -- from now on, floors wait for this transaction
    LOCK TABLE tally_change IN ROW EXCLUSIVE MODE;
    _run := open_run(_run_id);
    _runs := array_fill(_run.id, ARRAY[cardinality(_tasks.url)]);
    _fresh := mark_seen(_runs, _tasks.key);
    _sites := ensure_lines_and_sites(_runs, _tasks.site, _tasks.lane, _fresh);
    SELECT coalesce(bool_or((s.delay, s.site_delay, s.concurrency, s.hard_timeout, s.lease, s.limit_exits, s.limit_window)
                            <> (_run.delay, _run.site_delay, _run.concurrency, _run.hard_timeout, _run.lease,
                                _run.limit_exits, _run.limit_window)), false)
    INTO _tighten
    FROM (
        SELECT * FROM site
        WHERE site.id = ANY (_sites)
        ORDER BY site.id FOR NO KEY UPDATE
    ) AS s;
    accepted := insert_tasks(_now, _runs, _sites, _tasks, _fresh, _tighten);
    duplicates := cardinality(_tasks.url) - accepted;
    IF duplicates > 0 THEN
        INSERT INTO tally_change (run, line, duplicates) VALUES (_run.id, 0, duplicates);
    END IF;
    PERFORM reopen_run(_run.id, accepted);
    PERFORM lower_floors(_now);
END
$$;
