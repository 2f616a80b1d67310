-- entry: verb
-- The verb `resume_run`: back to where it was. What was set aside is ready again, and a run that was leaving stays.
-- Raises SH404 = no such run, SH425 = it is arriving.
CREATE FUNCTION resume_run(_now bigint, _run_id text) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    _run run;
    _task bigint[];
BEGIN
    _now := moment(_now);
    LOCK TABLE tally_change IN ROW EXCLUSIVE MODE;
    SELECT * INTO _run FROM run WHERE run_id = _run_id;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'no run %', _run_id USING ERRCODE = 'SH404';
    ELSIF _run.state <> 'paused' THEN
        RETURN;
    ELSIF _run.move::jsonb ->> 'state' = 'arriving' THEN
        PERFORM refuse_moving(_run);
    END IF;
    _task := ARRAY(SELECT t.id FROM task AS t WHERE t.state = 3 AND t.run = _run.id);
    PERFORM 1 FROM site
    WHERE id = ANY (ARRAY(SELECT DISTINCT t.site FROM task AS t WHERE t.id = ANY (_task))) ORDER BY id FOR NO KEY UPDATE;
    PERFORM make_ready(_now, _task, 3);
    UPDATE run SET state = CASE WHEN sealed THEN 'running' ELSE 'open' END,
                   move = replace(move, '"state":"leaving"', '"state":"stayed"')
    WHERE id = _run.id AND state = 'paused';
    UPDATE run SET state = 'finished', ended_at = _now, results_until = _now + results_ttl
    WHERE id = _run.id AND sealed AND state = 'running' AND remaining_of(id) = 0;
    UPDATE line SET held = false WHERE queue = _run.queue AND _run.queue = _run.run_id;
    PERFORM lower_floors(_now);
END
$$;
