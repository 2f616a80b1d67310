-- entry: verb
-- The verb `sweep`, bounded. _gone: workers that are known to be dead; of those in _read, the notebook could be read, and
-- the tasks in _hand were in hand. looked_at: the last slot that was looked at (null = none yet); the next sweep goes on from
-- the one that is answered.
CREATE FUNCTION sweep(
    _now bigint, _gone int[], _read int[], _hand bigint[], _most int, INOUT looked_at_site int,
    INOUT looked_at_exit text,
    OUT returned int, OUT buried int, OUT expired int, OUT cancelled int, OUT items_deleted bigint, OUT more boolean
)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    _task bigint[];
    _run int;
    _many int;
    _ripe record;
    _lost record;
BEGIN
    _now := moment(_now);
    LOCK TABLE tally_change, item IN ROW EXCLUSIVE MODE;
    _task := ARRAY(
        SELECT l.id
        FROM (
            SELECT t.id FROM task AS t WHERE t.state = 2 AND cardinality(_gone) > 0 AND t.worker = ANY (_gone)
            UNION
            (SELECT t.id FROM task AS t WHERE t.state = 2 AND t.lease_until <= _now ORDER BY t.lease_until LIMIT _most)
        ) AS l
        LIMIT _most);
    SELECT * INTO _lost FROM reclaim_leases(_now, _task, _gone, _read, _hand);
    returned := _lost.returned;
    buried := _lost.buried;
    cancelled := _lost.cancelled;
    more := cardinality(_task) = _most;
    SELECT * INTO _ripe FROM stage_delayed(_now, _most);
    expired := _ripe.expired;
    more := more OR _ripe.more;
    _many := end_cancelled(_now, _most);
    cancelled := cancelled + _many;
    more := more OR _many = _most;
    PERFORM release_held(_now, _most);
    SELECT * INTO looked_at_site, looked_at_exit
    FROM forget_slots(_now - {{KEPT_AT_REST}}, 200, looked_at_site, looked_at_exit);
    PERFORM finish_runs(_now);
    PERFORM finish_forgotten(_now, 1000);
    more := relax_sites(_now, 200) OR more;
    WITH old AS (
        DELETE FROM item USING (
            SELECT i.run, i.id
            FROM (SELECT r.id FROM run AS r WHERE r.results_until <= _now) AS r
            CROSS JOIN LATERAL (SELECT i.run, i.id FROM item AS i WHERE i.run = r.id LIMIT _most) AS i
            LIMIT _most
        ) AS i
        WHERE item.run = i.run AND item.id = i.id
        RETURNING item.n
    )
    SELECT coalesce(sum(o.n), 0), count(*) INTO items_deleted, _many FROM old AS o;
    more := more OR _many = _most;
    UPDATE run SET results_until = NULL
    WHERE results_until <= _now AND NOT is_job AND NOT EXISTS (SELECT 1 FROM item AS i WHERE i.run = run.id);
    DELETE FROM cache WHERE key = ANY (ARRAY(
        SELECT c.key FROM cache AS c WHERE c.expires_at <= _now LIMIT _most FOR UPDATE SKIP LOCKED));
    DELETE FROM note USING (
        SELECT n.stream, n.id FROM note AS n WHERE n.expires_at <= _now ORDER BY n.expires_at LIMIT _most
        FOR UPDATE SKIP LOCKED
    ) AS o
    WHERE note.stream = o.stream AND note.id = o.id;
    GET DIAGNOSTICS _many = ROW_COUNT;
    more := more OR _many = _most;
    PERFORM forget_workers(_now, _gone);
    PERFORM check_floors(_now);
    PERFORM fold_tally();
    PERFORM lower_floors(_now);
END
$$;
