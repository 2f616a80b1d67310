-- This transaction has taken long: what it made due may lie below floors that others have raised meanwhile.
CREATE FUNCTION lower_floors(_now bigint) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    _lines int[];
BEGIN
    IF clock_timestamp() - now() < interval '150 ms' THEN
        RETURN;
    END IF;
    _lines := ARRAY(SELECT DISTINCT f.line FROM line_floor AS f WHERE f.floor > _now ORDER BY f.line);
    PERFORM 1 FROM line WHERE id = ANY (_lines) ORDER BY id FOR NO KEY UPDATE;
    INSERT INTO line_floor (line, at, floor)
    SELECT u.line, 1 + (SELECT max(f.at) FROM line_floor AS f WHERE f.line = u.line), _now FROM unnest(_lines) AS u (line);
END
$$;
