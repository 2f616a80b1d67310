-- A run on its way between two stores is not to be changed. Raises SH423 = it is leaving, SH425 = it is arriving.
CREATE FUNCTION refuse_moving(_run run) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    _move_state text := CASE WHEN _run.state = 'paused' THEN _run.move::jsonb ->> 'state' END;
BEGIN
    IF _move_state = 'leaving' THEN
        RAISE EXCEPTION 'run % is leaving', _run.run_id USING ERRCODE = 'SH423';
    ELSIF _move_state = 'arriving' THEN
        RAISE EXCEPTION 'run % is arriving', _run.run_id USING ERRCODE = 'SH425';
    END IF;
END
$$;
