-- New tasks take their places. The caller holds the locks of their sites. Answers how many.
-- _tighten: the rules of some of the sites are not those of the runs. _made: the runs were made by this transaction, so that
-- nobody else can write to their tallies.
CREATE FUNCTION insert_tasks(
    _now bigint, _run int[], _site int[], _tasks new_tasks, _fresh boolean[], _tighten boolean, _made boolean DEFAULT false
) RETURNS int
LANGUAGE plpgsql
AS $$
DECLARE
    accepted int;
BEGIN
    IF _tighten THEN
        PERFORM tighten_sites(_run, _site, _fresh);
    END IF;
    WITH kinds AS MATERIALIZED (
        SELECT u.run, u.lane, l.id AS line, (r.lanes -> b.lane ->> 'ttl')::bigint AS ttl, r.is_job
        FROM (SELECT DISTINCT u.run, u.lane FROM unnest(_run, _tasks.lane, _fresh) AS u (run, lane, fresh) WHERE u.fresh) AS u
        CROSS JOIN LATERAL (SELECT * FROM run WHERE run.id = u.run OFFSET 0) AS r
        CROSS JOIN LATERAL (SELECT * FROM lane_and_pool(u.lane, r.pool)) AS b
        CROSS JOIN LATERAL (
            SELECT line.id FROM line
            WHERE line.queue = r.queue AND line.scraper = r.scraper AND line.lane = b.lane AND line.pool = b.pool
            OFFSET 0) AS l
    ), fresh AS MATERIALIZED (
        SELECT nextval('task_number') AS id, f.*
        FROM (
            SELECT u.run, k.line, u.site, u.url, u.handler, coalesce(u.priority, 0) AS priority,
                   coalesce(u.depth, 0) AS depth, u.extra, part_of(k.is_job, u.extra) AS part,
                   CASE WHEN u.wait > 0 THEN _now + u.wait END AS not_before,
                   _now + coalesce(u.wait, 0) + least(u.ttl, k.ttl) AS expires_at
            FROM unnest(_run, _tasks.url, _site, _tasks.lane, _tasks.handler, _tasks.priority, _tasks.depth, _tasks.wait,
                        _tasks.ttl, _tasks.extra, _fresh)
                 WITH ORDINALITY AS u (run, url, site, lane, handler, priority, depth, wait, ttl, extra, fresh, n)
            JOIN kinds AS k ON k.run = u.run AND k.lane = u.lane
            WHERE u.fresh
            ORDER BY u.n
        ) AS f
    ), placed AS (
        INSERT INTO task (id, place, not_before, expires_at, run, line, site, priority, depth, state, url, handler, extra,
                          part)
        SELECT f.id, place_of(f.priority, f.id), f.not_before, f.expires_at, f.run, f.line, f.site, f.priority, f.depth,
               (f.not_before IS NOT NULL)::int, f.url, f.handler, f.extra, f.part
        FROM fresh AS f
    ), visits AS MATERIALIZED (
        SELECT p.*, v.visit_at
        FROM (
            SELECT f.site, f.line, min(place_of(f.priority, f.id)) AS floor, count(*) AS ready
            FROM fresh AS f
            WHERE f.not_before IS NULL
            GROUP BY f.site, f.line
        ) AS p
        LEFT JOIN LATERAL visit_of(p.site, p.line) AS v ON true
    ), grown AS (
        UPDATE visit SET ready = visit.ready + p.ready, floor = least(visit.floor, p.floor)
        FROM visits AS p
        WHERE visit.ctid = p.visit_at
    ), scheduled AS (
        INSERT INTO visit (site, line, due_at, floor, ready)
        SELECT p.site, p.line, _now, p.floor, p.ready FROM visits AS p WHERE p.visit_at IS NULL
    ), counted AS (
        INSERT INTO tally_change (run, line, waiting)
        SELECT c.run, f.line, count(*)
        FROM fresh AS f CROSS JOIN LATERAL (SELECT CASE WHEN _made THEN 0 ELSE f.run END AS run OFFSET 0) AS c
        GROUP BY c.run, f.line
    ), begun AS (
        INSERT INTO tally (run, line, waiting)
        SELECT f.run, f.line, count(*) FROM fresh AS f WHERE _made GROUP BY f.run, f.line
    )
    SELECT count(*) INTO accepted FROM fresh;
    RETURN accepted;
END
$$;
