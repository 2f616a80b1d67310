-- The verb `exchange`: settle what is finished, let in what it brought, then claim more; all in one transaction.
-- One row per lease, and at the end one row that speaks for all (`task` is null there).
-- _link_of: the position of the settlement that brought a link. _pool, _exit: the exits that the worker has, pool by pool.
-- _private: the pools of which other workers have other exits. _stream, _text, _keep: notes, and how long they are kept.
-- _told_of: the position of the settlement that tells about an exit, _told_ok: that it works; else that it has failed.
-- _note_of, _entry_of, _saved_of: the position of the settlement that leaves a note or an entry behind, or saved something.
-- _patient: the caller has nothing to settle and found all due sites locked: wait for those of the first line.
-- Errors: 40001 = a lease was lost while this was under way, and the links it brought must not be remembered: once more.
CREATE FUNCTION exchange(
    _now bigint,
    _worker_id text, _machine text, _pid bigint, _pid_started bigint, _notebook text, _duties text,
    _scrapers text[], _lanes text[], _queues text[], _pool text[], _exit text[], _want int, _ahead bigint,
    _tokens bigint[], _patient boolean, _private text[], _stream text[], _text bytea[], _keep bigint[],
    _run_id text[], _task bigint[], _token bigint[], _kind smallint[], _started bigint[], _wait bigint[], _penalty int[],
    _requests int[], _received bigint[], _refused int[], _duplicates int[], _crawl_delay bigint[], _url text[],
    _note text[], _group text[], _n int[], _body bytea[], _pace bigint[], _cause text[],
    _told_of int[], _told_exit text[], _told_ok boolean[],
    _note_of int[], _note_stream text[], _note_body bytea[], _note_keep bigint[],
    _entry_of int[], _entry_key text[], _entry_value bytea[], _entry_keep bigint[],
    _saved_of int[], _saved_requests int[], _saved_bytes bigint[],
    _link_of int[], _link_url text[], _link_site text[], _link_key bytea[], _link_lane text[], _link_handler text[],
    _link_priority int[], _link_depth int[], _link_wait bigint[], _link_ttl bigint[], _link_extra text[]
) RETURNS TABLE (
    task bigint, token bigint, exit text, start_at bigint, start_by bigint, expires_at bigint, delay bigint,
    exclusive boolean, penalty int, run_id text, url text, site text, handler text, priority int, depth int, attempts int,
    crashes int, extra text, scraper text, lane text,
    moment bigint, wake_at bigint, remaining bigint, stood bigint[], busy boolean, exit_failures int
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
    _link_sites int[];
    _locked record;
    _due record;
    _given int := 0;
    _many int;
    _waiting bigint;
    _remaining bigint;
    _changes bigint;
    _busy boolean := false;
    _wake_at bigint;
    _ways record;
    _known text[];  -- exits about which there is something to heed; null = none. _ways says what
    _failures int[];
    _open record;
    _usable text[];
    _rooms int[];
    _look_at bigint;
    _most int;
    _later_lines int[] := '{}';  -- lines that are of no use before _later_at, however early their visits are due
    _later_at bigint[] := '{}';
BEGIN
    _now := moment(_now);
    IF _patient OR cardinality(_task) > 0 THEN
        PERFORM pg_current_xact_id();  -- from now on, floors wait for this transaction
    END IF;
    LOCK TABLE tally_change, item IN ROW EXCLUSIVE MODE;
    IF cardinality(_stream) > 0 THEN
        PERFORM keep_notes(_now, _stream, _text, _keep, 0);
    END IF;
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
            _link_sites := open_places(_link_run, _link_site, _link_lane, _fresh);
        END IF;
        SELECT * INTO _locked FROM lock_settled(_task, _token, _link_run, _link_sites);
        IF _locked.singly AND 0 = ALL (_kind) AND cardinality(_crawl_delay) + cardinality(_pace) = 0 THEN
            _stood := settle_done(_now, _run_id, _task, _token, _started, _requests, _received, _refused, _duplicates, _url,
                                  _group, _n, _body);
        ELSE
            _stood := settle(_now, _run_id, _task, _token, _kind, _started, _wait, _penalty, _requests, _received, _refused,
                             _duplicates, _crawl_delay, _url, _note, _group, _n, _body, _pace, _cause);
        END IF;
        IF cardinality(_stood) < cardinality(_task) THEN
            PERFORM refuse(_run_id, _stood);
        END IF;
        IF cardinality(_note_of) + cardinality(_entry_of) + cardinality(_saved_of) > 0 THEN
            PERFORM leave_behind(_now, _run_id, _stood, cardinality(_stream), _note_of, _note_stream, _note_body, _note_keep,
                                 _entry_of, _entry_key, _entry_value, _entry_keep,
                                 _saved_of, _saved_requests, _saved_bytes);
        END IF;
        IF _fresh IS NOT NULL THEN
            PERFORM let_links_in(_now, _stood, _link_of, _link_run, _link_url, _link_sites, _link_lane, _link_handler,
                                 _link_priority, _link_depth, _link_wait, _link_ttl, _link_extra, _fresh,
                                 _locked.tighten);
        END IF;
        IF cardinality(_told_of) > 0 THEN
            PERFORM learn(_now, _stood, _told_of, _told_exit, _told_ok);
        END IF;
    END IF;
    IF NOT _patient AND (
        EXISTS (SELECT 1 FROM task AS t WHERE t.expires_at IS NOT NULL AND t.state <> 2 AND t.expires_at <= _now)
        OR EXISTS (SELECT 1 FROM task AS t WHERE t.state = 1 AND t.not_before <= _now)
    ) THEN
        PERFORM ripen(_now, 1000);
    END IF;
    _worker := greet(_now, _worker_id, _machine, _pid, _pid_started, _notebook, _duties);

    IF _want > 0 THEN
        IF EXISTS (SELECT 1 FROM exit_book AS b
                   WHERE b.failures > 0 OR b.quarantined_until > 0 OR b.banned_until > 0 OR b.cap > 0) THEN
            SELECT * INTO _ways FROM find_ways(_now, _exit, _patient);
            _known := _ways.names;
            _failures := _ways.failures;
            _patient := _patient AND NOT _ways.guarded;
        END IF;
        -- Preferred lanes first; within a lane at random, so that no run waits behind another for ever.
        FOR _line IN
            SELECT l.id, l.lane, l.scraper, l.auto_ack, l.pool = ANY (_private) AS own, floor_of(l.id) AS floor,
                   ARRAY(SELECT u.exit FROM unnest(_pool, _exit) AS u (pool, exit) WHERE u.pool = l.pool) AS exits
            FROM lines_asked(_scrapers, _lanes, _queues) AS a
            CROSS JOIN LATERAL (SELECT * FROM line WHERE line.id = a.line OFFSET 0) AS l
            WHERE NOT l.held AND a.waiting > 0 AND l.pool = ANY (_pool)
            ORDER BY array_position(_lanes, l.lane), random()
        LOOP
            EXIT WHEN _given >= _want;
            FOR _round IN 1 .. CASE WHEN _line.own THEN 1 ELSE 8 END LOOP
                _most := _want - _given;
                _usable := _line.exits;
                IF _known IS NOT NULL THEN
                    SELECT * INTO _open FROM open_ways(_now, _line.exits, _ways.names, _ways.rooms, _ways.open_at);
                    _most := least(_most, _open.room);
                    IF _open.exits IS NULL THEN
                        _later_lines := _later_lines || _line.id;
                        _later_at := _later_at || _open.open_at;
                        EXIT;
                    END IF;
                    _usable := _open.exits;
                    _rooms := _open.rooms;
                    _look_at := _open.look_at;
                END IF;
                SELECT * INTO _due
                FROM lock_due(_line.id, _line.floor, _now + _ahead, CASE WHEN _line.own THEN 4 * _most + 64 ELSE _most END,
                              _patient);
                EXIT WHEN _due.sites IS NULL;
                IF _due.singly AND cardinality(_line.exits) = 1 AND _known IS NULL AND NOT _line.own THEN
                    RETURN QUERY
                    SELECT d.*, _line.scraper, _line.lane, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint[],
                           NULL::boolean, 0
                    FROM draw_heads(_now, _now + _ahead, _line.id, _line.auto_ack, _line.exits[1], _worker,
                                    _tokens[_given + 1 : _want], _due.sites, _due.visits) AS d;
                ELSE
                    RETURN QUERY
                    SELECT d.*, _line.scraper, _line.lane, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint[],
                           NULL::boolean, coalesce(_failures[array_position(_known, d.exit)], 0)
                    FROM draw(_now, _now + _ahead, _line.id, _line.auto_ack, _usable, _rooms, _look_at, _line.own,
                              _most, _worker, _tokens[_given + 1 : _want], _due.sites, _due.visits) AS d;
                END IF;
                GET DIAGNOSTICS _many = ROW_COUNT;
                IF _line.own AND _given + _many < _want THEN
                    _later_lines := _later_lines || _line.id;
                    _later_at := _later_at || look_again(_now, _line.id, _due.sites, _line.exits, 4 * _most + 64) - _ahead;
                END IF;
                IF _known IS NOT NULL AND _many > 0 THEN
                    PERFORM note_probes(_ways.tried, _tokens);
                    SELECT * INTO _ways FROM find_ways(_now, _exit, false);
                END IF;
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
            (SELECT min(greatest(_now, v.due_at - _ahead, _later_at[array_position(_later_lines, u.line)]))
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
           _now, _wake_at, _remaining, _stood, _busy, NULL::int;
END
$$;
