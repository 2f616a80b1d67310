-- What a claim has found not to be due any more need not be looked at again. A visit is never made due before the start of
-- the transaction that makes it. So when all have ended that were under way at the time of the last floor, whatever was
-- made due before that time can be seen, and lies above the new floor. A transaction counts as under way from its first
-- change, which comes at once: the 300 ms are for that. Ten times a second is enough, and nobody is waited for.
CREATE FUNCTION raise_floor(_now bigint, _lines int[]) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    _line int;
    _last line_floor;
    _floor bigint;  -- a function call in its place would cost the scan its lower bound
BEGIN
    FOREACH _line IN ARRAY _lines LOOP
        SELECT * INTO _last FROM line_floor AS f WHERE f.line = _line ORDER BY f.line DESC, f.at DESC LIMIT 1;
        CONTINUE WHEN _last.at >= _now - 100 OR _last.upto > pg_snapshot_xmin(pg_current_snapshot());
        PERFORM 1 FROM line WHERE id = _line FOR NO KEY UPDATE SKIP LOCKED;
        CONTINUE WHEN NOT FOUND;
        _floor := floor_of(_line);
        INSERT INTO line_floor (line, at, upto, floor)
        SELECT _line, _now, pg_snapshot_xmax(pg_current_snapshot()), least(coalesce(_last.at - 300, 0), (
            SELECT v.due_at FROM visit AS v
            WHERE v.line = _line AND v.due_at >= _floor ORDER BY v.due_at LIMIT 1));
        DELETE FROM line_floor AS f WHERE f.line = _line AND f.at BETWEEN _now - 10000 AND _now - 1 AND NOT f.checked;
    END LOOP;
END
$$;
