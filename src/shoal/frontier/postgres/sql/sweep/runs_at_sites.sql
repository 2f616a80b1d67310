-- The runs that go on (or are paused) and have tasks waiting at these sites, and all that have leases there. A line of a
-- queue that one run has for itself tells its run; otherwise, and among those set aside, _most tasks are looked through.
-- run: null = there are more than that.
CREATE FUNCTION runs_at_sites(_sites int[], _most int) RETURNS TABLE (site int, run int)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH places AS MATERIALIZED (
        SELECT v.site, v.line, v.floor, r.id AS run
        FROM unnest(_sites) AS u (site)
        CROSS JOIN LATERAL (SELECT * FROM visit WHERE visit.site = u.site OFFSET 0) AS v
        CROSS JOIN LATERAL (SELECT line.queue FROM line WHERE line.id = v.line OFFSET 0) AS l
        LEFT JOIN LATERAL (
            SELECT run.id FROM run WHERE run.run_id = l.queue AND run.queue = run.run_id OFFSET 0) AS r ON true
    ), waiting AS MATERIALIZED (
        SELECT p.site, p.run, 0 AS crowd FROM places AS p WHERE p.run IS NOT NULL
        UNION ALL
        SELECT p.site, t.run, t.nth FROM places AS p
        CROSS JOIN LATERAL (
            SELECT t.run, row_number() OVER () AS nth
            FROM (
                SELECT task.run FROM task
                WHERE task.state = 0 AND task.line = p.line AND task.site = p.site AND task.place >= p.floor
                ORDER BY task.place LIMIT _most
            ) AS t
        ) AS t
        WHERE p.run IS NULL
        UNION ALL
        SELECT u.site, t.run, t.nth FROM unnest(_sites) AS u (site)
        CROSS JOIN LATERAL (
            SELECT t.run, row_number() OVER () AS nth
            FROM (SELECT task.run FROM task WHERE task.site = u.site AND task.state IN (1, 3) LIMIT _most) AS t
        ) AS t
    )
    SELECT DISTINCT w.site, CASE WHEN w.crowd < _most THEN w.run END
    FROM waiting AS w
    CROSS JOIN LATERAL (SELECT run.state FROM run WHERE run.id = w.run OFFSET 0) AS r
    WHERE w.crowd = _most OR r.state NOT IN ('finished', 'cancelled')
    UNION
    SELECT t.site, t.run FROM task AS t WHERE t.state = 2 AND t.lease_until > 0 AND t.site = ANY (_sites);
END
$$;
