-- Make the lines and sites that new tasks need and that are not there yet. New sites begin with the rules of their run.
CREATE FUNCTION open_places(_run int[], _site text[], _lane text[], _fresh boolean[]) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    INSERT INTO line (queue, scraper, lane, pool, auto_ack, held)
    SELECT DISTINCT ON (r.queue, r.scraper, u.lane, r.pool) r.queue, r.scraper, u.lane, r.pool,
           coalesce((r.lanes -> u.lane ->> 'auto_ack')::boolean, false), r.state = 'paused' AND r.queue = r.run_id
    FROM (SELECT DISTINCT u.run, u.lane FROM unnest(_run, _lane, _fresh) AS u (run, lane, fresh) WHERE u.fresh) AS u
    CROSS JOIN LATERAL (SELECT * FROM run WHERE run.id = u.run OFFSET 0) AS r
    WHERE NOT EXISTS (
        SELECT 1 FROM line AS l
        WHERE l.queue = r.queue AND l.scraper = r.scraper AND l.lane = u.lane AND l.pool = r.pool)
    ORDER BY 1, 2, 3, 4
    ON CONFLICT DO NOTHING;

    INSERT INTO site (key, delay, site_delay, concurrency, hard_timeout, lease)
    SELECT u.site, r.delay, r.site_delay, r.concurrency, r.hard_timeout, r.lease
    FROM (SELECT DISTINCT ON (u.site COLLATE "C") u.site, u.run
          FROM unnest(_run, _site, _fresh) AS u (run, site, fresh)
          WHERE u.fresh
          ORDER BY u.site COLLATE "C") AS u
    CROSS JOIN LATERAL (SELECT * FROM run WHERE run.id = u.run OFFSET 0) AS r
    WHERE NOT EXISTS (SELECT 1 FROM site AS s WHERE s.key = u.site)
    ORDER BY u.site COLLATE "C"
    ON CONFLICT DO NOTHING;
END
$$;
