-- Runs with nothing left that nobody has finished: their last tasks were ended by many at once. Looks at some, from
-- anywhere on, so that thousands of jobs do not make a sweep slow.
CREATE FUNCTION finish_forgotten(_now bigint, _most int) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    _from int := (SELECT random() * max(r.id) FROM run AS r WHERE r.state = 'running' AND r.sealed);
    _runs int[];
BEGIN
    _runs := ARRAY(
        SELECT u.id
        FROM (
            (SELECT r.id FROM run AS r WHERE r.state = 'running' AND r.sealed AND r.id >= _from ORDER BY r.id LIMIT _most)
            UNION
            (SELECT r.id FROM run AS r WHERE r.state = 'running' AND r.sealed ORDER BY r.id LIMIT _most)
        ) AS u);
    PERFORM finish_empty(_now, few_left(_runs, 1));
END
$$;
