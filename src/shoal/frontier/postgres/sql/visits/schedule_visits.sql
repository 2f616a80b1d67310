-- Tasks became ready at these sites, each named once with its line. A visit that is there already keeps its time.
CREATE FUNCTION schedule_visits(_now bigint, _site int[], _line int[], _ready int[], _floor bigint[]) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    WITH visits AS MATERIALIZED (
        SELECT u.*, v.visit_at
        FROM unnest(_site, _line, _ready, _floor) AS u (site, line, ready, floor)
        LEFT JOIN LATERAL visit_of(u.site, u.line) AS v ON true
    ), grown AS (
        UPDATE visit SET ready = visit.ready + p.ready, floor = least(visit.floor, p.floor)
        FROM visits AS p
        WHERE visit.ctid = p.visit_at
    )
    INSERT INTO visit (site, line, due_at, floor, ready)
    SELECT p.site, p.line, _now, p.floor, p.ready FROM visits AS p WHERE p.visit_at IS NULL;
END
$$;
