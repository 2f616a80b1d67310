-- entry: verb
-- Tasks of a run that wait, by number.
CREATE FUNCTION pack_tasks(_run_id text, _after bigint, _most int)
RETURNS TABLE (
    number bigint, url text, site text, lane text, handler text, priority int, depth int, attempts int, crashes int,
    extra text, not_before bigint, expires_at bigint
)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT t.id, t.url, s.key::text, l.lane || chr(31) || l.pool, t.handler, t.priority, t.depth, t.attempts, t.crashes, t.extra, t.not_before,
           t.expires_at
    FROM (
        SELECT * FROM task
        WHERE task.id > _after AND task.run = (SELECT r.id FROM run AS r WHERE r.run_id = _run_id)
        ORDER BY task.id
        LIMIT _most
    ) AS t
    JOIN site AS s ON s.id = t.site
    JOIN line AS l ON l.id = t.line
    ORDER BY t.id;
END
$$;
