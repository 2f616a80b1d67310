-- Tasks at these sites are no longer ready. A visit with nothing to do ends.
CREATE FUNCTION unschedule_visits(_site int[], _line int[], _ready int[]) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    UPDATE visit SET ready = visit.ready - u.ready
    FROM unnest(_site, _line, _ready) AS u (site, line, ready)
    WHERE visit.site = u.site AND visit.line = u.line;
    DELETE FROM visit USING unnest(_site, _line) AS u (site, line)
    WHERE visit.site = u.site AND visit.line = u.line AND visit.ready <= 0;
END
$$;
