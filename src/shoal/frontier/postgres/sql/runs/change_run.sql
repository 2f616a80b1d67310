-- entry: verb
-- The verbs `seal_run`, `pause_run` and `cancel_run`. In a queue of its own, the lines of a run are held; in a shared one,
-- its tasks are set aside or ended when a claim meets them. Raises SH404 = no such run.
CREATE FUNCTION change_run(_now bigint, _run_id text, _change text) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    _run run;
BEGIN
    _now := moment(_now);
    LOCK TABLE tally_change IN ROW EXCLUSIVE MODE;
    SELECT * INTO _run FROM run WHERE run_id = _run_id FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'no run %', _run_id USING ERRCODE = 'SH404';
    END IF;
    IF _change = 'seal' THEN
        PERFORM refuse_moving(_run);
        UPDATE run SET sealed = true, state = CASE state WHEN 'open' THEN 'running' ELSE state END WHERE id = _run.id;
        UPDATE run SET state = 'finished', ended_at = _now, results_until = _now + results_ttl
        WHERE id = _run.id AND state = 'running' AND remaining_of(id) = 0;
        RETURN;
    END IF;
    IF _run.state IN ('finished', 'cancelled') OR (_change = 'pause' AND _run.state = 'paused') THEN
        RETURN;
    END IF;
    IF _change = 'pause' THEN
        UPDATE run SET state = 'paused' WHERE id = _run.id;
    ELSE
        UPDATE run SET state = 'cancelled', ended_at = _now, results_until = _now + results_ttl WHERE id = _run.id;
    END IF;
    UPDATE line SET held = true WHERE queue = _run.queue AND _run.queue = _run.run_id;
END
$$;
