-- entry: verb
-- Dead letters of a run, by number, with all that is needed to try them again.
CREATE FUNCTION pack_letters(_run_id text, _after bigint, _most int)
RETURNS TABLE (
    number bigint, url text, site text, lane text, handler text, priority int, depth int, attempts int, crashes int,
    extra text, reason text, died_at bigint
)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT d.task, d.url, s.key::text, l.lane || chr(31) || l.pool, d.handler, d.priority, d.depth, d.attempts, d.crashes, d.extra, d.reason,
           d.died_at
    FROM (
        SELECT * FROM dead
        WHERE dead.run = (SELECT r.id FROM run AS r WHERE r.run_id = _run_id) AND dead.task > _after
        ORDER BY dead.task
        LIMIT _most
    ) AS d
    JOIN site AS s ON s.id = d.site
    JOIN line AS l ON l.id = d.line
    ORDER BY d.task;
END
$$;
