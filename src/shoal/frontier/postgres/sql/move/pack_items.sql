-- entry: verb
-- Stored batches of items of a run, in order.
CREATE FUNCTION pack_items(_run_id text, _after bigint, _most int)
RETURNS TABLE (id bigint, n int, url text, group_name text, body bytea)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT i.id, i.n, i.url, i.group_name, i.body FROM item AS i
    WHERE i.run = (SELECT r.id FROM run AS r WHERE r.run_id = _run_id) AND i.id > _after
    ORDER BY i.id
    LIMIT _most;
END
$$;
