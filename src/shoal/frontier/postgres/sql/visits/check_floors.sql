-- Once a minute: should a visit lie below the floor after all, because a clock was set back or a commit took very long, the
-- floor goes down to it. Old floors go.
CREATE FUNCTION check_floors(_now bigint) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    _line int;
BEGIN
    FOR _line IN SELECT l.id FROM line AS l WHERE l.waiting + l.live <> 0 FOR NO KEY UPDATE SKIP LOCKED LOOP
        CONTINUE WHEN EXISTS (SELECT 1 FROM line_floor AS f WHERE f.line = _line AND f.checked AND f.at > _now - 60000);
        INSERT INTO line_floor (line, at, floor, checked)
        SELECT _line, greatest(_now, 1 + (SELECT max(f.at) FROM line_floor AS f WHERE f.line = _line)),
               least(floor_of(_line), (SELECT v.due_at FROM visit AS v WHERE v.line = _line ORDER BY v.due_at LIMIT 1)), true;
        DELETE FROM line_floor AS f WHERE f.line = _line AND f.at < _now - 10000;
    END LOOP;
END
$$;
