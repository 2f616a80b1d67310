-- entry: verb
-- Keys that a run has seen, in their own order.
CREATE FUNCTION pack_keys(_run_id text, _after bytea, _most int) RETURNS TABLE (key bytea)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT s.key FROM seen AS s
    WHERE s.run = (SELECT r.id FROM run AS r WHERE r.run_id = _run_id) AND s.key > _after
    ORDER BY s.key
    LIMIT _most;
END
$$;
