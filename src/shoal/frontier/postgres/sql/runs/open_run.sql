-- A run that takes tasks. Raises SH404 = no such run, SH410 = it was cancelled, SH423 and SH425 as refuse_moving.
CREATE FUNCTION open_run(_run_id text) RETURNS run
LANGUAGE plpgsql
AS $$
DECLARE
    _run run;
BEGIN
    SELECT * INTO _run FROM run WHERE run_id = _run_id;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'no run %', _run_id USING ERRCODE = 'SH404';
    ELSIF _run.state = 'cancelled' THEN
        RAISE EXCEPTION 'run % was cancelled', _run_id USING ERRCODE = 'SH410';
    END IF;
    PERFORM refuse_moving(_run);
    RETURN _run;
END
$$;
