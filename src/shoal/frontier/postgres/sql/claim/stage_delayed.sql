-- Time's effect on waiting tasks: those whose time is over end, those whose moment has come are ready; at most so many of
-- each. Sites that others have locked are left for the next time. Answers how many ended, and whether there may be more.
CREATE FUNCTION stage_delayed(_now bigint, _most int, OUT expired int, OUT more boolean)
LANGUAGE plpgsql
AS $$
DECLARE
    _task bigint[];
    _answer record;
BEGIN
    expired := 0;
    SELECT array_agg(o.id) INTO _task
    FROM (
        SELECT t.id FROM task AS t JOIN site AS s ON s.id = t.site
        WHERE t.expires_at IS NOT NULL AND t.state <> 2 AND t.expires_at <= _now
        ORDER BY t.expires_at LIMIT _most
        FOR NO KEY UPDATE OF s SKIP LOCKED
    ) AS o;
    IF _task IS NOT NULL THEN
        expired := end_waiting(_now, _task, true);
    END IF;
    more := coalesce(cardinality(_task), 0) = _most;
    SELECT array_agg(o.id) INTO _task
    FROM (
        SELECT t.id FROM task AS t JOIN site AS s ON s.id = t.site
        WHERE t.state = 1 AND t.not_before <= _now
        ORDER BY t.not_before LIMIT _most
        FOR NO KEY UPDATE OF s SKIP LOCKED
    ) AS o;
    IF _task IS NOT NULL THEN
        PERFORM make_ready(_now, _task, 1);
    END IF;
    more := more OR coalesce(cardinality(_task), 0) = _most;
END
$$;
