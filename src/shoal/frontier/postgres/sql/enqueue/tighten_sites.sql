-- Tasks of these runs come to these sites: a site with no tasks takes the rules of the run, one with tasks keeps the
-- strictest of both. Sites whose rules are those of the run already are left alone. Where rules differ, sweeps look whether
-- all of them are still needed (`relax_sites`).
CREATE FUNCTION tighten_sites(_run int[], _site int[], _fresh boolean[]) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    INSERT INTO contested_site (site)
    SELECT u.site
    FROM (SELECT DISTINCT u.run, u.site FROM unnest(_run, _site, _fresh) AS u (run, site, fresh) WHERE u.fresh) AS u
    CROSS JOIN LATERAL (SELECT * FROM run WHERE run.id = u.run OFFSET 0) AS r
    CROSS JOIN LATERAL (SELECT * FROM site WHERE site.id = u.site OFFSET 0) AS s
    GROUP BY u.site
    HAVING count(DISTINCT (r.delay, r.site_delay, r.concurrency, r.hard_timeout, r.lease, r.limit_exits, r.limit_window)) > 1
        OR (bool_or((s.delay, s.site_delay, s.concurrency, s.hard_timeout, s.lease, s.limit_exits, s.limit_window)
                    <> (r.delay, r.site_delay, r.concurrency, r.hard_timeout, r.lease, r.limit_exits, r.limit_window))
            AND is_busy(u.site))
    ON CONFLICT DO NOTHING;
    UPDATE site
    SET delay = n.delay, site_delay = n.site_delay, concurrency = n.concurrency, hard_timeout = n.hard_timeout,
        lease = n.lease, limit_exits = n.limit_exits, limit_window = n.limit_window
    FROM (
        SELECT s.id,
               CASE WHEN e.busy THEN greatest(s.delay, d.delay) ELSE d.delay END AS delay,
               CASE WHEN e.busy THEN greatest(s.site_delay, d.site_delay) ELSE d.site_delay END AS site_delay,
               CASE WHEN e.busy THEN least(s.concurrency, d.concurrency) ELSE d.concurrency END AS concurrency,
               CASE WHEN e.busy THEN greatest(s.hard_timeout, d.hard_timeout) ELSE d.hard_timeout END AS hard_timeout,
               CASE WHEN e.busy THEN greatest(s.lease, d.lease) ELSE d.lease END AS lease,
               CASE WHEN e.busy THEN least(s.limit_exits, d.limit_exits) ELSE d.limit_exits END AS limit_exits,
               CASE WHEN e.busy THEN greatest(s.limit_window, d.limit_window) ELSE d.limit_window END AS limit_window
        FROM (
            SELECT u.site, max(r.delay) AS delay, max(r.site_delay) AS site_delay, min(r.concurrency) AS concurrency,
                   max(r.hard_timeout) AS hard_timeout, max(r.lease) AS lease,
                   min(r.limit_exits) AS limit_exits, max(r.limit_window) AS limit_window
            FROM (SELECT DISTINCT u.run, u.site FROM unnest(_run, _site, _fresh) AS u (run, site, fresh) WHERE u.fresh) AS u
            CROSS JOIN LATERAL (SELECT * FROM run WHERE run.id = u.run OFFSET 0) AS r
            GROUP BY u.site
        ) AS d
        CROSS JOIN LATERAL (
            SELECT * FROM site
            WHERE site.id = d.site
              AND (site.delay, site.site_delay, site.concurrency, site.hard_timeout, site.lease, site.limit_exits,
                   site.limit_window)
                  <> (d.delay, d.site_delay, d.concurrency, d.hard_timeout, d.lease, d.limit_exits,
                       d.limit_window)
            OFFSET 0) AS s
        CROSS JOIN LATERAL (SELECT is_busy(s.id) AS busy OFFSET 0) AS e
    ) AS n
    WHERE site.id = n.id
      AND (site.delay, site.site_delay, site.concurrency, site.hard_timeout, site.lease, site.limit_exits,
           site.limit_window)
          <> (n.delay, n.site_delay, n.concurrency, n.hard_timeout, n.lease, n.limit_exits,
               n.limit_window);
END
$$;
