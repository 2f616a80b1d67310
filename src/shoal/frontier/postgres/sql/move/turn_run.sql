-- entry: verb
-- Replace the mark of a run's move, if it is `_before`, and with it its state. False = not so, and nothing was changed.
-- Every verb that grants leases or lets tasks in holds a lock on `tally_change` from its beginning: with this one, all that
-- were under way have ended, and those that come see the mark.
CREATE FUNCTION turn_run(_now bigint, _run_id text, _before text, _after text, _state text, _paused boolean)
RETURNS boolean
LANGUAGE plpgsql
AS $$
DECLARE
    _run run;
BEGIN
    LOCK TABLE tally_change IN SHARE ROW EXCLUSIVE MODE;
    SELECT * INTO _run FROM run WHERE run_id = _run_id FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'no run %', _run_id USING ERRCODE = 'SH404';
    ELSIF _run.move IS DISTINCT FROM _before THEN
        RETURN false;
    ELSIF _state = 'leaving' THEN
        IF _run.state IN ('finished', 'cancelled') THEN
            RETURN false;
        ELSIF _run.is_job THEN
            RAISE EXCEPTION 'run % is a job', _run_id USING ERRCODE = 'SH403';
        END IF;
        PERFORM change_run(_now, _run_id, 'pause');
    ELSIF _run.state <> 'paused' OR (_state = 'left' AND count_held(_run_id) > 0) THEN
        RETURN false;
    END IF;
    UPDATE run SET move = _after WHERE id = _run.id;
    IF _state = 'left' THEN
        PERFORM change_run(_now, _run_id, 'cancel');
    ELSIF _state IN ('stayed', 'arrived') AND NOT _paused THEN
        PERFORM resume_run(_now, _run_id);
    END IF;
    RETURN true;
END
$$;
