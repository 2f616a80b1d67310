-- Let go of strict rules: of a run that has ended, or has no work left at a site where others go on. Of the contested sites,
-- those that were not looked at for longest get the strictest rules of the runs that have work there; a request under way
-- counts with the rules of its run, however that has ended. Answers whether there may be more.
CREATE FUNCTION relax_sites(_now bigint, _most int) RETURNS boolean
LANGUAGE plpgsql
AS $$
DECLARE
    _crowd CONSTANT int := 1000;  -- where more tasks would have to be looked through, rules stay as they are
    _sites int[];
    _relaxed int[];
    _settled int[];
BEGIN
    _sites := ARRAY(
        SELECT s.id
        FROM (SELECT c.site FROM contested_site AS c ORDER BY c.looked_at LIMIT _most) AS c
        CROSS JOIN LATERAL (SELECT site.id FROM site WHERE site.id = c.site FOR NO KEY UPDATE SKIP LOCKED) AS s);
    IF _sites = '{}' THEN
        RETURN false;
    END IF;
    WITH found AS MATERIALIZED (
        SELECT h.site, bool_or(h.run IS NULL) AS crowded, max(r.delay) AS delay, max(r.site_delay) AS site_delay,
               min(r.concurrency) AS concurrency, max(r.hard_timeout) AS hard_timeout, max(r.lease) AS lease,
               min(r.limit_exits) AS limit_exits, max(r.limit_window) AS limit_window,
               count(DISTINCT (r.delay, r.site_delay, r.concurrency, r.hard_timeout, r.lease, r.limit_exits,
                               r.limit_window)) AS different
        FROM runs_at_sites(_sites, _crowd) AS h
        LEFT JOIN LATERAL (SELECT * FROM run WHERE run.id = h.run OFFSET 0) AS r ON true
        GROUP BY h.site
    ), rules AS MATERIALIZED (
        SELECT f.*
        FROM found AS f
        CROSS JOIN LATERAL (SELECT * FROM site WHERE site.id = f.site OFFSET 0) AS s
        WHERE NOT f.crowded
          AND (s.delay, s.site_delay, s.concurrency, s.hard_timeout, s.lease, s.limit_exits, s.limit_window)
              <> (f.delay, f.site_delay, f.concurrency, f.hard_timeout, f.lease, f.limit_exits, f.limit_window)
    ), relaxed AS (
        UPDATE site
        SET delay = n.delay, site_delay = n.site_delay, concurrency = n.concurrency, hard_timeout = n.hard_timeout,
            lease = n.lease, limit_exits = n.limit_exits, limit_window = n.limit_window
        FROM rules AS n
        WHERE site.id = n.site
    ), held AS (
        -- A lease that had its slot for itself may begin late, and make several requests: where others may join it from now
        -- on, they wait until it has ended. So its slot's clock is put as far ahead as a lease lives, and by each sweep
        -- again; its settlement puts it back.
        UPDATE slot SET begun_at = greatest(slot.begun_at, a.latest)
        FROM (
            SELECT f.site, _now + s.lease AS latest,
                   CASE WHEN NOT f.crowded AND s.concurrency = 1 AND s.site_delay = 0 AND f.concurrency > 1 THEN -1
                        ELSE _now + s.lease / 2 END AS behind
            FROM found AS f
            CROSS JOIN LATERAL (SELECT * FROM site WHERE site.id = f.site OFFSET 0) AS s
        ) AS a
        WHERE slot.site = a.site AND slot.live > 0 AND slot.begun_at > a.behind AND EXISTS (
            SELECT 1 FROM task AS t
            WHERE t.state = 2 AND t.lease_until > 0 AND t.token = slot.last_token AND t.site = slot.site)
        RETURNING slot.site
    )
    SELECT ARRAY(SELECT n.site FROM rules AS n),
           ARRAY(SELECT u.site FROM unnest(_sites) AS u (site)
                 WHERE NOT EXISTS (SELECT 1 FROM found AS f WHERE f.site = u.site AND (f.crowded OR f.different > 1))
                   AND NOT EXISTS (SELECT 1 FROM held AS h WHERE h.site = u.site))
    INTO _relaxed, _settled;
    IF _relaxed <> '{}' THEN
        UPDATE visit SET due_at = _now WHERE site = ANY (_relaxed) AND due_at > _now;
    END IF;
    IF _settled <> '{}' THEN
        DELETE FROM contested_site WHERE site = ANY (_settled);
    END IF;
    IF cardinality(_sites) = _most THEN  -- otherwise all were looked at, and a sweep that changes nothing writes nothing
        UPDATE contested_site SET looked_at = _now WHERE site = ANY (_sites);
    END IF;
    RETURN cardinality(_sites) = _most AND _relaxed <> '{}';
END
$$;
