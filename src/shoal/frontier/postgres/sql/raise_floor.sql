-- What a claim has found not to be due any more need not be looked at again. A visit is never made due before the start of
-- the transaction that makes it; those under way began a moment ago, or see to it themselves (`lower_floors`). Ten times a
-- second is enough, and nobody is waited for.
CREATE FUNCTION raise_floor(_now bigint, _lines int[]) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    _line int;
    _floor bigint;  -- a function call in its place would cost the scan its lower bound
BEGIN
    FOREACH _line IN ARRAY _lines LOOP
        CONTINUE WHEN EXISTS (SELECT 1 FROM line_floor AS f WHERE f.line = _line AND f.at >= _now - 100);
        PERFORM 1 FROM line WHERE id = _line FOR NO KEY UPDATE SKIP LOCKED;
        CONTINUE WHEN NOT FOUND;
        _floor := floor_of(_line);
        INSERT INTO line_floor (line, at, floor)
        SELECT _line, _now, coalesce(least(_now - 300, (
            SELECT v.due_at FROM visit AS v
            WHERE v.line = _line AND v.due_at >= _floor ORDER BY v.due_at LIMIT 1)), 0);
        DELETE FROM line_floor AS f WHERE f.line = _line AND f.at BETWEEN _now - 10000 AND _now - 1 AND NOT f.checked;
    END LOOP;
END
$$;
