-- entry: look
-- Dead letters of a run whose task number is above `_after`. Raises SH404 = no such run.
CREATE FUNCTION read_dead(_run_id text, _after bigint, _most int)
RETURNS TABLE (
    task bigint, url text, site text, lane text, handler text, attempts int, crashes int, reason text, died_at bigint
)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    _number int;
BEGIN
    SELECT id INTO _number FROM run WHERE run_id = _run_id;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'no run %', _run_id USING ERRCODE = 'SH404';
    END IF;
    RETURN QUERY
    SELECT d.task, d.url, s.key::text, l.lane, d.handler, d.attempts, d.crashes, d.reason, d.died_at
    FROM (SELECT * FROM dead WHERE dead.run = _number AND dead.task > _after ORDER BY dead.task LIMIT _most) AS d
    JOIN site AS s ON s.id = d.site
    JOIN line AS l ON l.id = d.line
    ORDER BY d.task;
END
$$;
