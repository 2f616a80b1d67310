-- The run that is arriving with this mark. Raises SH409 = there is none.
CREATE FUNCTION arriving_run(_run_id text, _move text) RETURNS run
LANGUAGE plpgsql
AS $$
DECLARE
    _run run;
BEGIN
    SELECT * INTO _run FROM run WHERE run_id = _run_id AND move = _move AND state = 'paused' FOR SHARE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'run % is not arriving', _run_id USING ERRCODE = 'SH409';
    END IF;
    RETURN _run;
END
$$;
