-- Lock the sites of a line that may be visited by `_horizon`, longest due first; null = there are none. Also answers where
-- in the table their visits stand, and whether each of them gives an exit only one lease at a time. Sites that others hold
-- are passed over, unless the caller is patient (and holds nothing yet).
CREATE FUNCTION lock_due_sites(
    _line int, _floor bigint, _horizon bigint, _most int, _patient boolean, OUT sites int[], OUT visits tid[],
    OUT singly boolean
)
LANGUAGE plpgsql
AS $$
BEGIN
    IF _patient THEN
        sites := ARRAY(
            SELECT v.site FROM visit AS v WHERE v.line = _line AND v.due_at >= _floor AND v.due_at <= _horizon
            ORDER BY v.due_at LIMIT _most);
        SELECT bool_and(s.concurrency = 1) INTO singly
        FROM (SELECT site.concurrency FROM site WHERE site.id = ANY (sites) ORDER BY site.id FOR NO KEY UPDATE) AS s;
        visits := ARRAY(
            SELECT v.ctid FROM unnest(sites) WITH ORDINALITY AS u (site, nth)
            LEFT JOIN LATERAL (SELECT visit.ctid FROM visit WHERE visit.site = u.site AND visit.line = _line OFFSET 0) AS v
                ON true
            ORDER BY u.nth);
        sites := nullif(sites, '{}');
        RETURN;
    END IF;
    SELECT array_agg(d.site), array_agg(d.ctid), bool_and(d.concurrency = 1) INTO sites, visits, singly
    FROM (
        SELECT v.site, v.ctid, s.concurrency
        FROM visit AS v JOIN site AS s ON s.id = v.site
        WHERE v.line = _line AND v.due_at >= _floor AND v.due_at <= _horizon
        ORDER BY v.due_at
        LIMIT _most
        FOR NO KEY UPDATE OF s SKIP LOCKED
    ) AS d;
END
$$;
