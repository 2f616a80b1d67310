-- Tasks that were delayed (state 1) or held back (state 3) are ready; the caller holds the locks of their sites.
CREATE FUNCTION make_ready(_now bigint, _task bigint[], _state int) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    _answer record;
BEGIN
    WITH ready AS (
        UPDATE task SET state = 0, not_before = NULL
        WHERE id = ANY (_task) AND state = _state
        RETURNING site, line, place
    ), places AS (
        SELECT r.site, r.line, count(*)::int AS ready, min(r.place) AS floor FROM ready AS r GROUP BY r.site, r.line
    )
    SELECT array_agg(p.site) AS site, array_agg(p.line) AS line, array_agg(p.ready) AS ready, array_agg(p.floor) AS floor
    INTO _answer
    FROM places AS p;
    PERFORM schedule_visits(_now, _answer.site, _answer.line, _answer.ready, _answer.floor);
END
$$;
