-- New tasks take their places. The caller holds the locks of their sites. Answers how many.
-- _tighten: the rules of some of the sites are not those of the runs.
CREATE FUNCTION put_in_line(
    _now bigint, _run int[], _url text[], _site text[], _lane text[], _handler text[], _priority int[], _depth int[],
    _wait bigint[], _ttl bigint[], _extra text[], _fresh boolean[], _tighten boolean
) RETURNS int
LANGUAGE plpgsql
AS $$
DECLARE
    accepted int;
BEGIN
    IF _tighten THEN
        PERFORM tighten_sites(_run, _site, _fresh);
    END IF;
    WITH fresh AS MATERIALIZED (
        SELECT nextval('task_number') AS id, f.*
        FROM (
            SELECT u.run, l.id AS line, s.id AS site, u.url, u.handler, u.priority, u.depth, u.extra,
                   CASE WHEN u.wait > 0 THEN _now + u.wait END AS not_before,
                   _now + least(u.ttl, (r.lanes -> u.lane ->> 'ttl')::bigint) AS expires_at
            FROM unnest(_run, _url, _site, _lane, _handler, _priority, _depth, _wait, _ttl, _extra, _fresh)
                 WITH ORDINALITY AS u (run, url, site, lane, handler, priority, depth, wait, ttl, extra, fresh, n)
            CROSS JOIN LATERAL (SELECT * FROM run WHERE run.id = u.run OFFSET 0) AS r
            CROSS JOIN LATERAL (
                SELECT line.id FROM line
                WHERE line.queue = r.queue AND line.scraper = r.scraper AND line.lane = u.lane AND line.pool = r.pool
                OFFSET 0) AS l
            CROSS JOIN LATERAL (SELECT site.id FROM site WHERE site.key = u.site OFFSET 0) AS s
            WHERE u.fresh
            ORDER BY u.n
        ) AS f
    ), placed AS (
        INSERT INTO task (id, place, not_before, expires_at, run, line, site, priority, depth, state, url, handler, extra)
        SELECT f.id, place_of(f.priority, f.id), f.not_before, f.expires_at, f.run, f.line, f.site, f.priority, f.depth,
               (f.not_before IS NOT NULL)::int, f.url, f.handler, f.extra
        FROM fresh AS f
    ), scheduled AS (
        INSERT INTO visit (site, line, due_at, floor, ready)
        SELECT f.site, f.line, _now, min(place_of(f.priority, f.id)), count(*)
        FROM fresh AS f
        WHERE f.not_before IS NULL
        GROUP BY f.site, f.line
        ON CONFLICT (site, line) DO UPDATE
        SET ready = visit.ready + excluded.ready, floor = least(visit.floor, excluded.floor)
    ), counted AS (
        INSERT INTO tally_change (run, line, waiting)
        SELECT f.run, f.line, count(*) FROM fresh AS f GROUP BY f.run, f.line
    )
    SELECT count(*) INTO accepted FROM fresh;
    RETURN accepted;
END
$$;
