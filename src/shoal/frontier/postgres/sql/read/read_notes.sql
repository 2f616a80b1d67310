-- entry: look
-- Notes of a stream after a cursor. As with items, nothing is shown that an earlier transaction could still come before.
CREATE FUNCTION read_notes(_stream text, _cursor bigint, _most int)
RETURNS TABLE (id bigint, body bytea)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    _before bigint;
BEGIN
    _before := (finished_before()::text::bigint + (SELECT g.shift FROM ledger AS g)) << 20;
    RETURN QUERY
    SELECT n.id, n.body FROM note AS n
    WHERE n.stream = _stream AND n.id > _cursor AND n.id < _before
    ORDER BY n.id
    LIMIT _most;
END
$$;
