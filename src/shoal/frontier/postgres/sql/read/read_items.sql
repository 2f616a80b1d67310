-- entry: look
-- Items of a run after a cursor, in the order in which their transactions began to write. One that began earlier may commit
-- later; so nothing is shown that an earlier one could still come before, and no reader with a cursor misses anything.
CREATE FUNCTION read_items(_now bigint, _run_id text, _cursor bigint, _most int)
RETURNS TABLE (id bigint, url text, group_name text, body bytea)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    _run run;
    _before bigint;
BEGIN
    _now := moment(_now);
    _before := (finished_before()::text::bigint + (SELECT g.shift FROM ledger AS g)) << 20;
    SELECT * INTO _run FROM run WHERE run_id = _run_id;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'no run %', _run_id USING ERRCODE = 'SH404';
    END IF;
    RETURN QUERY
    SELECT i.id, i.url, i.group_name, i.body FROM item AS i
    WHERE i.run = _run.id AND i.id > _cursor AND i.id < _before
      AND (_run.results_until IS NULL OR _run.results_until > _now)
    ORDER BY i.id
    LIMIT _most;
END
$$;
