-- The verb `exchange`: settle what is finished, let in what it brought, then claim more; all in one transaction.
-- One row per lease, and at the end one row that speaks for all (`task` is null there).
-- _link_of: the position of the settlement that brought a link. _pool, _exit: the exits that the worker has, pool by pool.
-- _patient: the caller has nothing to settle and found all due sites locked: wait for those of the first line.
-- Errors: 40001 = a lease was lost while this was under way, and the links it brought must not be remembered: once more.
CREATE FUNCTION exchange(
    _now bigint,
    _worker_id text, _machine text, _pid bigint, _pid_started bigint, _notebook text,
    _scrapers text[], _lanes text[], _queues text[], _pool text[], _exit text[], _want int, _ahead bigint,
    _tokens bigint[], _patient boolean,
    _run_id text[], _task bigint[], _token bigint[], _kind smallint[], _started bigint[], _wait bigint[], _penalty int[],
    _requests int[], _received bigint[], _refused int[], _duplicates int[], _crawl_delay bigint[], _url text[],
    _note text[], _group text[], _n int[], _body bytea[],
    _link_of int[], _link_url text[], _link_site text[], _link_key bytea[], _link_lane text[], _link_handler text[],
    _link_priority int[], _link_depth int[], _link_wait bigint[], _link_ttl bigint[], _link_extra text[]
) RETURNS TABLE (
    task bigint, token bigint, exit text, start_at bigint, start_by bigint, expires_at bigint, delay bigint,
    exclusive boolean, penalty int, run_id text, url text, site text, handler text, priority int, depth int, attempts int,
    crashes int, extra text, scraper text, lane text,
    moment bigint, wake_at bigint, remaining bigint, stood bigint[], busy boolean
)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    _worker int;
    _line record;
    _drawable int[];
    _stood bigint[] := '{}';
    _link_run int[];
    _fresh boolean[];
    _tighten boolean;
    _due record;
    _given int := 0;
    _many int;
    _waiting bigint;
    _remaining bigint;
    _changes bigint;
    _busy boolean := false;
    _wake_at bigint;
BEGIN
    _now := moment(_now);
    LOCK TABLE tally_change, item IN ROW EXCLUSIVE MODE;
    IF cardinality(_task) > 0 THEN
        IF cardinality(_link_of) > 0 THEN
            SELECT array_agg(t.run ORDER BY u.nth) INTO _link_run
            FROM unnest(_link_of) WITH ORDINALITY AS u (settlement, nth)
            LEFT JOIN LATERAL (
                SELECT t.run FROM task AS t CROSS JOIN run AS r
                WHERE t.id = _task[u.settlement] AND t.token = _token[u.settlement]
                  AND r.id = t.run AND r.run_id = _run_id[u.settlement] AND r.state <> 'cancelled'
                OFFSET 0) AS t ON true;
            _fresh := remember(_link_run, _link_key);
            PERFORM open_places(_link_run, _link_site, _link_lane, _fresh);
        END IF;
        _tighten := lock_settled(_task, _token, _link_run, _link_site, _fresh);
        _stood := settle(_now, _run_id, _task, _token, _kind, _started, _wait, _penalty, _requests, _received, _refused,
                         _duplicates, _crawl_delay, _url, _note, _group, _n, _body);
        IF cardinality(_stood) < cardinality(_task) THEN
            PERFORM refuse(_run_id, _stood);
        END IF;
        IF _fresh IS NOT NULL THEN
            PERFORM let_links_in(_now, _stood, _link_of, _link_run, _link_url, _link_site, _link_lane, _link_handler,
                                 _link_priority, _link_depth, _link_wait, _link_ttl, _link_extra, _fresh,
                                 _tighten);
        END IF;
    END IF;
    IF NOT _patient THEN
        PERFORM ripen(_now, 1000);
    END IF;
    _worker := greet(_now, _worker_id, _machine, _pid, _pid_started, _notebook);

    IF _want > 0 THEN
        -- Preferred lanes first; within a lane at random, so that no run waits behind another for ever.
        FOR _line IN
            SELECT l.id, l.lane, l.scraper, l.auto_ack, floor_of(l.id) AS floor,
                   ARRAY(SELECT u.exit FROM unnest(_pool, _exit) AS u (pool, exit) WHERE u.pool = l.pool) AS exits
            FROM lines_asked(_scrapers, _lanes, _queues) AS a
            CROSS JOIN LATERAL (SELECT * FROM line WHERE line.id = a.line OFFSET 0) AS l
            WHERE NOT l.held AND a.waiting > 0 AND l.pool = ANY (_pool)
            ORDER BY array_position(_lanes, l.lane), random()
        LOOP
            EXIT WHEN _given >= _want;
            FOR _round IN 1 .. 8 LOOP
                SELECT * INTO _due FROM lock_due(_line.id, _line.floor, _now + _ahead, _want - _given, _patient);
                EXIT WHEN _due.sites IS NULL;
                RETURN QUERY
                SELECT d.*, _line.scraper, _line.lane, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint[], NULL::boolean
                FROM draw(_now, _now + _ahead, _line.id, _line.auto_ack, _line.exits, _want - _given, _worker,
                          _tokens[_given + 1 : _want], _due.sites, _due.visits) AS d;
                GET DIAGNOSTICS _many = ROW_COUNT;
                _given := _given + _many;
                _patient := false;
                EXIT WHEN _given >= _want;
            END LOOP;
        END LOOP;
    END IF;

    PERFORM finish_runs(_now);
    SELECT coalesce(sum(a.waiting + a.live), 0), coalesce(sum(a.changes), 0),
           coalesce(sum(a.waiting) FILTER (WHERE NOT l.held AND l.pool = ANY (_pool)), 0),
           coalesce(array_agg(l.id) FILTER (WHERE NOT l.held AND l.pool = ANY (_pool) AND a.waiting > 0), '{}')
    INTO _remaining, _changes, _waiting, _drawable
    FROM lines_asked(_scrapers, _lanes, _queues) AS a
    CROSS JOIN LATERAL (SELECT * FROM line WHERE line.id = a.line OFFSET 0) AS l;
    IF _want > 0 AND _given = _want THEN
        _wake_at := CASE WHEN _waiting > 0 THEN _now END;
    ELSE
        _wake_at := least(
            (SELECT min(greatest(_now, v.due_at - _ahead))
             FROM unnest(_drawable) AS u (line)
             CROSS JOIN LATERAL (SELECT floor_of(u.line) AS floor OFFSET 0) AS l
             CROSS JOIN LATERAL (
                 SELECT v.due_at FROM visit AS v
                 WHERE v.line = u.line AND v.due_at >= l.floor ORDER BY v.due_at LIMIT 1) AS v),
            (SELECT min(t.not_before)
             FROM unnest(_drawable) AS u (line)
             CROSS JOIN LATERAL (
                 SELECT t.not_before FROM task AS t
                 WHERE t.state = 1 AND t.line = u.line ORDER BY t.not_before LIMIT 1) AS t));
        _busy := _want > 0 AND _wake_at <= _now;
    END IF;
    PERFORM raise_floor(_now, _drawable);
    IF _changes > 400 THEN
        PERFORM fold();
    END IF;
    PERFORM lower_floors(_now);
    RETURN QUERY
    SELECT NULL::bigint, NULL::bigint, NULL, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint, NULL::boolean,
           NULL::int, NULL, NULL, NULL, NULL, NULL::int, NULL::int, NULL::int, NULL::int, NULL, NULL, NULL,
           _now, _wake_at, _remaining, _stood, _busy;
END
$$;
