-- Lock the sites of a line that may be visited by `_horizon`, longest due first; null = there are none. Also answers where
-- in the table their visits stand. Sites that others hold are passed over, unless the caller is patient (and holds nothing
-- yet).
CREATE FUNCTION lock_due(
    _line int, _floor bigint, _horizon bigint, _most int, _patient boolean, OUT sites int[], OUT visits tid[]
)
LANGUAGE plpgsql
AS $$
BEGIN
    IF _patient THEN
        sites := ARRAY(
            SELECT v.site FROM visit AS v WHERE v.line = _line AND v.due_at >= _floor AND v.due_at <= _horizon
            ORDER BY v.due_at LIMIT _most);
        PERFORM 1 FROM site WHERE id = ANY (sites) ORDER BY id FOR NO KEY UPDATE;
        visits := ARRAY(
            SELECT v.ctid FROM unnest(sites) WITH ORDINALITY AS u (site, nth)
            LEFT JOIN LATERAL (SELECT visit.ctid FROM visit WHERE visit.site = u.site AND visit.line = _line OFFSET 0) AS v
                ON true
            ORDER BY u.nth);
        sites := nullif(sites, '{}');
        RETURN;
    END IF;
    SELECT array_agg(d.site), array_agg(d.ctid) INTO sites, visits
    FROM (
        SELECT v.site, v.ctid
        FROM visit AS v JOIN site AS s ON s.id = v.site
        WHERE v.line = _line AND v.due_at >= _floor AND v.due_at <= _horizon
        ORDER BY v.due_at
        LIMIT _most
        FOR NO KEY UPDATE OF s SKIP LOCKED
    ) AS d;
END
$$;
