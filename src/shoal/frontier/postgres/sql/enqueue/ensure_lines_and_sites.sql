-- The sites that new tasks go to, by number (null where a task is not fresh). Makes the lines and sites that are not there
-- yet; new sites begin with the rules of their run. _lane: a lane, and behind chr(31) a pool where it is not the run's.
CREATE FUNCTION ensure_lines_and_sites(_run int[], _site text[], _lane text[], _fresh boolean[]) RETURNS int[]
LANGUAGE plpgsql
AS $$
DECLARE
    _ids int[];
BEGIN
    INSERT INTO line (queue, scraper, lane, pool, auto_ack, held)
    SELECT DISTINCT ON (r.queue, r.scraper, b.lane, b.pool) r.queue, r.scraper, b.lane, b.pool,
           coalesce((r.lanes -> b.lane ->> 'auto_ack')::boolean, false), r.state = 'paused' AND r.queue = r.run_id
    FROM (SELECT DISTINCT u.run, u.lane FROM unnest(_run, _lane, _fresh) AS u (run, lane, fresh) WHERE u.fresh) AS u
    CROSS JOIN LATERAL (SELECT * FROM run WHERE run.id = u.run OFFSET 0) AS r
    CROSS JOIN LATERAL (SELECT * FROM lane_and_pool(u.lane, r.pool)) AS b
    WHERE NOT EXISTS (
        SELECT 1 FROM line AS l
        WHERE l.queue = r.queue AND l.scraper = r.scraper AND l.lane = b.lane AND l.pool = b.pool)
    ORDER BY 1, 2, 3, 4
    ON CONFLICT DO NOTHING;
    _ids := sites_of(_site, _fresh);
    IF EXISTS (SELECT 1 FROM unnest(_ids, _fresh) AS u (id, fresh) WHERE u.fresh AND u.id IS NULL) THEN
        INSERT INTO site (key, delay, site_delay, concurrency, hard_timeout, lease, limit_exits, limit_window)
        SELECT u.site, r.delay, r.site_delay, r.concurrency, r.hard_timeout, r.lease, r.limit_exits, r.limit_window
        FROM (SELECT DISTINCT ON (u.site COLLATE "C") u.site, u.run
              FROM unnest(_run, _site, _fresh) AS u (run, site, fresh)
              WHERE u.fresh
              ORDER BY u.site COLLATE "C") AS u
        CROSS JOIN LATERAL (SELECT * FROM run WHERE run.id = u.run OFFSET 0) AS r
        WHERE NOT EXISTS (SELECT 1 FROM site AS s WHERE s.key = u.site)
        ORDER BY u.site COLLATE "C"
        ON CONFLICT DO NOTHING;
        _ids := sites_of(_site, _fresh);
    END IF;
    RETURN _ids;
END
$$;
