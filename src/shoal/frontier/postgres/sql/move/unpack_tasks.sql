-- entry: verb
-- Waiting tasks of an arriving run take their places. In a queue of its own, its lines are held; in a shared one, they are.
CREATE FUNCTION unpack_tasks(
    _now bigint, _run_id text, _move text, _id bigint[], _url text[], _site text[], _lane text[], _handler text[],
    _priority int[], _depth int[], _attempts int[], _crashes int[], _extra text[], _not_before bigint[],
    _expires_at bigint[]
) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    _run run;
    _runs int[];
    _sites int[];
    _answer record;
    _all boolean[] := array_fill(true, ARRAY[cardinality(_id)]);
BEGIN
    _now := moment(_now);
    LOCK TABLE tally_change IN ROW EXCLUSIVE MODE;
    _run := arriving_run(_run_id, _move);
    _runs := array_fill(_run.id, ARRAY[cardinality(_id)]);
    _sites := ensure_lines_and_sites(_runs, _site, _lane, _all);
    PERFORM 1 FROM site WHERE id = ANY (_sites) ORDER BY id FOR NO KEY UPDATE;
    PERFORM tighten_sites(_runs, _sites, _all);
    WITH come AS MATERIALIZED (
        SELECT u.*, l.id AS line_id,
               CASE WHEN u.not_before > _now THEN 1 WHEN _run.queue = _run.run_id THEN 0 ELSE 3 END AS state
        FROM unnest(_id, _url, _sites, _lane, _handler, _priority, _depth, _attempts, _crashes, _extra, _not_before,
                    _expires_at)
             AS u (id, url, site_id, lane, handler, priority, depth, attempts, crashes, extra, not_before, expires_at)
        CROSS JOIN LATERAL (SELECT * FROM lane_and_pool(u.lane, _run.pool)) AS b
        CROSS JOIN LATERAL (
            SELECT line.id FROM line
            WHERE line.queue = _run.queue AND line.scraper = _run.scraper AND line.lane = b.lane AND line.pool = b.pool
            OFFSET 0) AS l
    ), placed AS (
        INSERT INTO task (id, place, not_before, expires_at, run, line, site, priority, depth, attempts, crashes, state,
                          url, handler, extra)
        SELECT c.id, place_of(c.priority, c.id), CASE WHEN c.state = 1 THEN c.not_before END, c.expires_at, _run.id,
               c.line_id, c.site_id, c.priority, c.depth, c.attempts, c.crashes, c.state, c.url, c.handler, c.extra
        FROM come AS c
    ), counted AS (
        INSERT INTO tally_change (run, line, waiting)
        SELECT _run.id, c.line_id, count(*) FROM come AS c GROUP BY c.line_id
    ), places AS (
        SELECT c.site_id, c.line_id, count(*)::int AS ready, min(place_of(c.priority, c.id)) AS floor
        FROM come AS c
        WHERE c.state = 0
        GROUP BY c.site_id, c.line_id
    )
    SELECT array_agg(p.site_id) AS site, array_agg(p.line_id) AS line, array_agg(p.ready) AS ready,
           array_agg(p.floor) AS floor
    INTO _answer
    FROM places AS p;
    PERFORM schedule_visits(_now, _answer.site, _answer.line, _answer.ready, _answer.floor);
    PERFORM lower_floors(_now);
END
$$;
