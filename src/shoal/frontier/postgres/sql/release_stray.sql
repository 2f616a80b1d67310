-- A claim that met a paused run may have set tasks aside just when the run was resumed: they are ready after all.
CREATE FUNCTION release_stray(_now bigint, _most int) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    _task bigint[];
BEGIN
    SELECT array_agg(h.id) INTO _task
    FROM (
        SELECT t.id
        FROM task AS t
        JOIN run AS r ON r.id = t.run AND r.state IN ('open', 'running', 'finished')
        JOIN site AS s ON s.id = t.site
        WHERE t.state IN (1, 3) AND t.state = 3
        LIMIT _most
        FOR NO KEY UPDATE OF s SKIP LOCKED
    ) AS h;
    IF _task IS NOT NULL THEN
        PERFORM make_ready(_now, _task, 3);
    END IF;
END
$$;
