-- The verb `purge_dead`. _task: null = all of the run. Raises SH404 = no such run.
CREATE FUNCTION purge_dead(_run_id text, _task bigint[]) RETURNS int
LANGUAGE plpgsql
AS $$
DECLARE
    _number int;
    _many int;
BEGIN
    SELECT id INTO _number FROM run WHERE run_id = _run_id;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'no run %', _run_id USING ERRCODE = 'SH404';
    END IF;
    DELETE FROM dead WHERE run = _number AND (_task IS NULL OR task = ANY (_task));
    GET DIAGNOSTICS _many = ROW_COUNT;
    RETURN _many;
END
$$;
