-- When these sites, which a worker with exits of its own has looked at, are worth another look by these exits. If there may be
-- more sites than that (_most), soon.
CREATE FUNCTION next_look(_now bigint, _line int, _sites int[], _exits text[], _most int) RETURNS bigint
LANGUAGE plpgsql
AS $$
BEGIN
    RETURN (
        SELECT least(min(greatest(site_free_at(s.site_delay, s.begun_at, s.blocked_until), w.free_at)),
                     CASE WHEN cardinality(_sites) >= _most THEN _now + 100 END)
        FROM unnest(_sites) AS u (site)
        CROSS JOIN LATERAL (
            SELECT 1 FROM visit AS v WHERE v.site = u.site AND v.line = _line LIMIT 1) AS v
        CROSS JOIN LATERAL (SELECT * FROM site WHERE site.id = u.site OFFSET 0) AS s
        CROSS JOIN LATERAL (
            SELECT min(CASE WHEN k.live >= s.concurrency OR s.probing AND s.probe <> 0 OR k.probing AND k.probe <> 0
                            THEN _now + s.lease
                            ELSE slot_free_at(k.begun_at, pace_of(s.delay, s.crawl_delay, s.pace), k.blocked_until) END) AS free_at
            FROM unnest(_exits) AS e (exit)
            LEFT JOIN LATERAL (
                SELECT * FROM slot WHERE slot.site = u.site AND slot.exit = e.exit OFFSET 0) AS k ON true
        ) AS w);
END
$$;
