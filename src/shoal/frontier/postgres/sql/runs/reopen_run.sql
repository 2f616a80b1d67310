-- Tasks came to a run from outside: it must not end meanwhile, and if it has ended, it goes on. A shared lock, so that
-- those who enqueue do not wait for each other, but whoever ends, seals or cancels the run waits for them.
CREATE FUNCTION reopen_run(_number int, _accepted int) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    _state text;
BEGIN
    IF _accepted > 0 THEN
        SELECT state INTO _state FROM run WHERE id = _number FOR SHARE;
    END IF;
    IF _state = 'cancelled' THEN
        RAISE EXCEPTION 'run % was cancelled', _number USING ERRCODE = 'SH410';
    ELSIF _state = 'finished' THEN
        UPDATE run SET state = 'running', ended_at = NULL, results_until = NULL WHERE id = _number;
    END IF;
END
$$;
