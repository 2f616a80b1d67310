-- A claim that met a paused run may have set tasks aside just when the run was resumed: they are ready after all.
CREATE FUNCTION release_held(_now bigint, _most int) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    _task bigint[];
BEGIN
    SELECT array_agg(h.id) INTO _task
    FROM (
        SELECT t.id
        FROM run AS r
        JOIN task AS t ON t.run = r.id AND t.state = 3
        JOIN site AS s ON s.id = t.site
        WHERE r.state IN ('open', 'running')
        LIMIT _most
        FOR NO KEY UPDATE OF s SKIP LOCKED
    ) AS h;
    IF _task IS NOT NULL THEN
        PERFORM make_ready(_now, _task, 3);
    END IF;
END
$$;
