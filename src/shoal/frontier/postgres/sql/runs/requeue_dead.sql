-- entry: verb
-- The verb `requeue_dead`: dead letters wait again, as new as on their first day. _task: null = all of the run.
CREATE FUNCTION requeue_dead(_now bigint, _run_id text, _task bigint[]) RETURNS int
LANGUAGE plpgsql
AS $$
DECLARE
    _run run;
    _number int;
    _ids bigint[];
    _answer record;
BEGIN
    _now := moment(_now);
    LOCK TABLE tally_change IN ROW EXCLUSIVE MODE;
    _run := open_run(_run_id);
    _number := _run.id;
    _ids := ARRAY(SELECT d.task FROM dead AS d WHERE d.run = _number AND (_task IS NULL OR d.task = ANY (_task)));
    PERFORM 1 FROM site
    WHERE id = ANY (ARRAY(SELECT DISTINCT d.site FROM dead AS d WHERE d.task = ANY (_ids))) ORDER BY id FOR NO KEY UPDATE;
    SELECT array_agg(_number) AS run, array_agg(d.site) AS site, array_agg(true) AS fresh INTO _answer
    FROM (SELECT DISTINCT d.site FROM dead AS d WHERE d.task = ANY (_ids)) AS d;
    PERFORM tighten_sites(_answer.run, _answer.site, _answer.fresh);
    WITH risen AS MATERIALIZED (
        DELETE FROM dead AS d WHERE d.task = ANY (_ids) RETURNING d.*
    ), placed AS (
        INSERT INTO task (id, place, run, line, site, priority, depth, url, handler, extra, part)
        SELECT r.task, place_of(r.priority, r.task), r.run, r.line, r.site, r.priority, r.depth, r.url, r.handler, r.extra,
               part_of(_run.is_job, r.extra)
        FROM risen AS r
    ), counted AS (
        INSERT INTO tally_change (run, line, dead, waiting)
        SELECT r.run, r.line, -count(*), count(*) FROM risen AS r GROUP BY r.run, r.line
    ), places AS (
        SELECT r.site, r.line, count(*)::int AS ready, min(place_of(r.priority, r.task)) AS floor
        FROM risen AS r
        GROUP BY r.site, r.line
    )
    SELECT array_agg(p.site) AS site, array_agg(p.line) AS line, array_agg(p.ready) AS ready, array_agg(p.floor) AS floor,
           coalesce(sum(p.ready), 0)::int AS many
    INTO _answer
    FROM places AS p;
    PERFORM schedule_visits(_now, _answer.site, _answer.line, _answer.ready, _answer.floor);
    PERFORM reopen_run(_number, _answer.many);
    PERFORM lower_floors(_now);
    RETURN _answer.many;
END
$$;
