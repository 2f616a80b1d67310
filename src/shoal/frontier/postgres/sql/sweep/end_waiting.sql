-- These waiting tasks end, as expired or as cancelled; the caller holds the locks of their sites. Answers how many.
CREATE FUNCTION end_waiting(_now bigint, _task bigint[], _expired boolean) RETURNS int
LANGUAGE plpgsql
AS $$
DECLARE
    _answer record;
BEGIN
    WITH over AS (
        DELETE FROM task
        WHERE id = ANY (_task) AND state <> 2 AND (NOT _expired OR expires_at <= _now)
        RETURNING run, line, site, state, url, extra, expires_at
    ), otherwise AS (
        INSERT INTO ending
        SELECT e.*
        FROM over AS o
        CROSS JOIN LATERAL ending_of(o.run, o.url, o.extra, CASE WHEN _expired THEN 'expired' ELSE 'cancelled' END,
                                     CASE WHEN _expired THEN o.expires_at ELSE _now END, NULL) AS e
    ), counted AS (
        INSERT INTO tally_change (run, line, waiting, expired, cancelled)
        SELECT o.run, o.line, -count(*), CASE WHEN _expired THEN count(*) ELSE 0 END,
               CASE WHEN _expired THEN 0 ELSE count(*) END
        FROM over AS o
        GROUP BY o.run, o.line
    ), places AS (
        SELECT o.site, o.line, (count(*) FILTER (WHERE o.state = 0))::int AS ready, count(*) AS many
        FROM over AS o
        GROUP BY o.site, o.line
    )
    SELECT array_agg(p.site) AS site, array_agg(p.line) AS line, array_agg(p.ready) AS ready,
           coalesce(sum(p.many), 0) AS many
    INTO _answer
    FROM places AS p;
    IF _answer.many > 0 THEN
        PERFORM unschedule_visits(_answer.site, _answer.line, _answer.ready);
    END IF;
    RETURN _answer.many;
END
$$;
