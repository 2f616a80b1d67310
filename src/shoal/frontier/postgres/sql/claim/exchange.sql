-- entry: verb
-- The verb `exchange`: settle what is finished, let in what it brought, then claim more; all in one transaction.
-- One row per lease, and at the end one row that speaks for all (`task` is null there): `stood` = the positions of the
-- settlements whose leases stood; `busy` = more is due, but others hold it now.
-- _link_of: the position of the settlement that brought a link.
-- Errors: 40001 = a lease was lost while this was under way, and the links it brought must not be remembered: once more.
CREATE FUNCTION exchange(
    _now bigint, _worker worker_fields, _claim claim_request, _notes new_notes, _settled settlements,
    _reports exit_reports, _byproducts byproducts, _link_of int[], _links new_tasks
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
    _worker_number int;
    _want int := _claim.want;
    _ahead bigint := _claim.ahead;
    _patient boolean := _claim.patient;
    _line record;
    _claimable int[];
    _stood bigint[] := '{}';
    _due record;
    _given int := 0;
    _many int;
    _waiting bigint;
    _remaining bigint;
    _changes bigint;
    _busy boolean := false;
    _wake_at bigint;
    _health record;
    _known text[];  -- exits about which there is something to heed; null = none. _health says what
    _failures int[];
    _usable record;
    _exits text[];
    _rooms int[];
    _look_at bigint;
    _most int;
    _later_lines int[] := '{}';  -- lines that are of no use before _later_at, however early their visits are due
    _later_at bigint[] := '{}';
BEGIN
    _now := moment(_now);
    IF _patient OR cardinality(_settled.task) > 0 THEN
        PERFORM pg_current_xact_id();  -- from now on, floors wait for this transaction
    END IF;
    LOCK TABLE tally_change, item IN ROW EXCLUSIVE MODE;
    IF cardinality(_notes.stream) > 0 THEN
        PERFORM keep_notes(_now, _notes.stream, _notes.body, _notes.ttl, 0);
    END IF;
    IF cardinality(_settled.task) > 0 THEN
        _stood := settle(_now, _settled, _reports, _byproducts, cardinality(_notes.stream), _link_of, _links);
    END IF;
    IF NOT _patient AND (
        EXISTS (SELECT 1 FROM task AS t WHERE t.expires_at IS NOT NULL AND t.state <> 2 AND t.expires_at <= _now)
        OR EXISTS (SELECT 1 FROM task AS t WHERE t.state = 1 AND t.not_before <= _now)
    ) THEN
        PERFORM stage_delayed(_now, 1000);
    END IF;
    _worker_number := heartbeat(_now, _worker);

    IF _want > 0 THEN
        IF EXISTS (SELECT 1 FROM exit_book AS b
                   WHERE b.failures > 0 OR b.quarantined_until > 0 OR b.banned_until > 0 OR b.cap > 0) THEN
            SELECT * INTO _health FROM exit_health(_now, _claim.exit, _patient);
            _known := _health.names;
            _failures := _health.failures;
            _patient := _patient AND NOT _health.guarded;
        END IF;
        -- Preferred lanes first; within a lane at random, so that no run waits behind another for ever.
        FOR _line IN
            SELECT l.id, l.lane, l.scraper, l.auto_ack, l.pool = ANY (_claim.private) AS own, floor_of(l.id) AS floor,
                   ARRAY(SELECT u.exit FROM unnest(_claim.pool, _claim.exit) AS u (pool, exit) WHERE u.pool = l.pool) AS exits
            FROM find_lines(_claim.scrapers, _claim.lanes, _claim.queues) AS a
            CROSS JOIN LATERAL (SELECT * FROM line WHERE line.id = a.line OFFSET 0) AS l
            WHERE NOT l.held AND a.waiting > 0 AND l.pool = ANY (_claim.pool)
            ORDER BY array_position(_claim.lanes, l.lane), random()
        LOOP
            EXIT WHEN _given >= _want;
            FOR _round IN 1 .. CASE WHEN _line.own THEN 1 ELSE 8 END LOOP
                _most := _want - _given;
                _exits := _line.exits;
                IF _known IS NOT NULL THEN
                    SELECT * INTO _usable
                    FROM usable_exits(_now, _line.exits, _health.names, _health.rooms, _health.open_at);
                    _most := least(_most, _usable.room);
                    IF _usable.exits IS NULL THEN
                        _later_lines := _later_lines || _line.id;
                        _later_at := _later_at || _usable.open_at;
                        EXIT;
                    END IF;
                    _exits := _usable.exits;
                    _rooms := _usable.rooms;
                    _look_at := _usable.look_at;
                END IF;
                SELECT * INTO _due
                FROM lock_due_sites(_line.id, _line.floor, _now + _ahead,
                                    CASE WHEN _line.own THEN 4 * _most + 64 ELSE _most END, _patient);
                EXIT WHEN _due.sites IS NULL;
                IF _due.singly AND cardinality(_line.exits) = 1 AND _known IS NULL AND NOT _line.own THEN
                    RETURN QUERY
                    SELECT d.*, _line.scraper, _line.lane, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint[],
                           NULL::boolean, 0
                    FROM claim_by_one_exit(_now, _now + _ahead, _line.id, _line.auto_ack, _line.exits[1], _worker_number,
                                     _claim.tokens[_given + 1 : _want], _due.sites, _due.visits) AS d;
                ELSE
                    RETURN QUERY
                    SELECT d.*, _line.scraper, _line.lane, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint[],
                           NULL::boolean, coalesce(_failures[array_position(_known, d.exit)], 0)
                    FROM claim_by_any_exit(_now, _now + _ahead, _line.id, _line.auto_ack, _exits, _rooms, _look_at, _line.own,
                                     _most, _worker_number, _claim.tokens[_given + 1 : _want], _due.sites, _due.visits) AS d;
                END IF;
                GET DIAGNOSTICS _many = ROW_COUNT;
                IF _line.own AND _given + _many < _want THEN
                    _later_lines := _later_lines || _line.id;
                    _later_at := _later_at || next_look(_now, _line.id, _due.sites, _line.exits, 4 * _most + 64) - _ahead;
                END IF;
                IF _known IS NOT NULL AND _many > 0 THEN
                    PERFORM note_probes(_health.tried, _claim.tokens);
                    SELECT * INTO _health FROM exit_health(_now, _claim.exit, false);
                END IF;
                _given := _given + _many;
                _patient := false;
                EXIT WHEN _given >= _want;
            END LOOP;
        END LOOP;
    END IF;

    PERFORM finish_runs(_now);
    SELECT coalesce(sum(a.waiting + a.live), 0), coalesce(sum(a.changes), 0),
           coalesce(sum(a.waiting) FILTER (WHERE NOT l.held AND l.pool = ANY (_claim.pool)), 0),
           coalesce(array_agg(l.id) FILTER (WHERE NOT l.held AND l.pool = ANY (_claim.pool) AND a.waiting > 0), '{}')
    INTO _remaining, _changes, _waiting, _claimable
    FROM find_lines(_claim.scrapers, _claim.lanes, _claim.queues) AS a
    CROSS JOIN LATERAL (SELECT * FROM line WHERE line.id = a.line OFFSET 0) AS l;
    IF _want > 0 AND _given = _want THEN
        _wake_at := CASE WHEN _waiting > 0 THEN _now END;
    ELSE
        _wake_at := least(
            (SELECT min(greatest(_now, v.due_at - _ahead, _later_at[array_position(_later_lines, u.line)]))
             FROM unnest(_claimable) AS u (line)
             CROSS JOIN LATERAL (SELECT floor_of(u.line) AS floor OFFSET 0) AS l
             CROSS JOIN LATERAL (
                 SELECT v.due_at FROM visit AS v
                 WHERE v.line = u.line AND v.due_at >= l.floor ORDER BY v.due_at LIMIT 1) AS v),
            (SELECT min(t.not_before)
             FROM unnest(_claimable) AS u (line)
             CROSS JOIN LATERAL (
                 SELECT t.not_before FROM task AS t
                 WHERE t.state = 1 AND t.line = u.line ORDER BY t.not_before LIMIT 1) AS t));
        _busy := _want > 0 AND _wake_at <= _now;
    END IF;
    PERFORM raise_floor(_now, _claimable);
    IF _changes > 400 THEN
        PERFORM fold_tally();
    END IF;
    PERFORM lower_floors(_now);
    RETURN QUERY
    SELECT NULL::bigint, NULL::bigint, NULL, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint, NULL::boolean,
           NULL::int, NULL, NULL, NULL, NULL, NULL::int, NULL::int, NULL::int, NULL::int, NULL, NULL, NULL,
           _now, _wake_at, _remaining, _stood, _busy, NULL::int;
END
$$;
