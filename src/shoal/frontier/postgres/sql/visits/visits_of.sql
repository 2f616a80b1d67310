-- The visits of a site: those of these lines, each found at once; or (null) of all lines.
CREATE FUNCTION visits_of(_site int, _lines int[]) RETURNS TABLE (visit_at tid, due_at bigint)
LANGUAGE sql STABLE  -- a part of the statements that use it
AS $$
    SELECT v.visit_at, v.due_at FROM unnest(_lines) AS l (id) CROSS JOIN LATERAL visit_of(_site, l.id) AS v
    UNION ALL
    SELECT visit.ctid, visit.due_at FROM visit WHERE _lines IS NULL AND visit.site = _site
$$;
