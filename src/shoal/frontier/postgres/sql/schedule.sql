-- Tasks became ready at these sites. A visit that is there already keeps its time.
CREATE FUNCTION schedule(_now bigint, _site int[], _line int[], _ready int[], _floor bigint[]) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    INSERT INTO visit (site, line, due_at, floor, ready)
    SELECT u.site, u.line, _now, u.floor, u.ready
    FROM unnest(_site, _line, _ready, _floor) AS u (site, line, ready, floor)
    ON CONFLICT (site, line) DO UPDATE
    SET ready = visit.ready + excluded.ready, floor = least(visit.floor, excluded.floor);
END
$$;
