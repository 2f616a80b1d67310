-- The visit of a site and a line: where in the table it stands, and when it is due; nothing, if there is none.
CREATE FUNCTION visit_of(_site int, _line int) RETURNS TABLE (visit_at tid, due_at bigint)
LANGUAGE sql STABLE ROWS 1  -- a part of the statements that use it
AS $$
    SELECT visit.ctid, visit.due_at
    FROM visit
    WHERE visit.site BETWEEN _site AND _site AND visit.line = _line
    ORDER BY visit.site DESC, visit.line DESC
    LIMIT 1
$$;
