-- The verb `enqueue`. Errors: SH404 = no such run, SH410 = it was cancelled, SH423 and SH425 as refuse_moving.
CREATE FUNCTION enqueue(
    _now bigint, _run_id text, _url text[], _site text[], _key bytea[], _lane text[], _handler text[], _priority int[],
    _depth int[], _wait bigint[], _ttl bigint[], _extra text[], OUT accepted int, OUT duplicates int
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
    _runs := array_fill(_run.id, ARRAY[cardinality(_url)]);
    _fresh := remember(_runs, _key);
    _sites := open_places(_runs, _site, _lane, _fresh);
    SELECT coalesce(bool_or((s.delay, s.site_delay, s.concurrency, s.hard_timeout, s.lease, s.limit_exits, s.limit_window)
                            <> (_run.delay, _run.site_delay, _run.concurrency, _run.hard_timeout, _run.lease,
                                _run.limit_exits, _run.limit_window)), false)
    INTO _tighten
    FROM (
        SELECT * FROM site
        WHERE site.id = ANY (_sites)
        ORDER BY site.id FOR NO KEY UPDATE
    ) AS s;
    accepted := put_in_line(_now, _runs, _url, _sites, _lane, _handler, _priority, _depth, _wait, _ttl, _extra, _fresh,
                            _tighten);
    duplicates := cardinality(_url) - accepted;
    IF duplicates > 0 THEN
        INSERT INTO tally_change (run, line, duplicates) VALUES (_run.id, 0, duplicates);
    END IF;
    PERFORM go_on(_run.id, accepted);
    PERFORM lower_floors(_now);
END
$$;
