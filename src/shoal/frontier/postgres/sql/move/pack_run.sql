-- entry: verb
-- A run, and between which numbers those of its tasks and dead letters are. Raises SH404 = no such run.
CREATE FUNCTION pack_run(_run_id text)
RETURNS TABLE (
    scraper text, mode text, queue text, policy text, input bytea, created_at bigint, sealed boolean, low bigint, high bigint
)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT r.scraper, r.mode, nullif(r.queue, r.run_id), r.policy, r.input, r.created_at, r.sealed,
           coalesce(least((SELECT min(t.id) FROM task AS t), (SELECT min(d.task) FROM dead AS d WHERE d.run = r.id)), 0),
           (SELECT n.last_value FROM task_number AS n)
    FROM run AS r
    WHERE r.run_id = _run_id;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'no run %', _run_id USING ERRCODE = 'SH404';
    END IF;
END
$$;
