-- entry: verb
-- How pages of a run ended that were not done, by name; of several endings of one page the last.
CREATE FUNCTION pack_endings(_run_id text, _after bytea, _most int)
RETURNS TABLE (name bytea, state text, ended_at bigint, reason text, url text)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT DISTINCT ON (e.name) e.name, e.state, e.ended_at, e.reason, e.url
    FROM ending AS e
    WHERE e.run = (SELECT r.id FROM run AS r WHERE r.run_id = _run_id) AND e.name > _after
    ORDER BY e.name, e.ended_at DESC
    LIMIT _most;
END
$$;
