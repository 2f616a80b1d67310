-- Delete what jobs have gathered, at most so many rows of each kind. Answers whether there may be more.
CREATE FUNCTION delete_results(_runs int[], _rows int) RETURNS boolean
LANGUAGE plpgsql
AS $$
DECLARE
    _many int;
BEGIN
    DELETE FROM item USING (
        SELECT i.run, i.id FROM unnest(_runs) AS u (run)
        CROSS JOIN LATERAL (SELECT item.run, item.id FROM item WHERE item.run = u.run LIMIT _rows) AS i
        LIMIT _rows
    ) AS i
    WHERE item.run = i.run AND item.id = i.id;
    GET DIAGNOSTICS _many = ROW_COUNT;
    IF _many = _rows THEN
        RETURN true;
    END IF;
    DELETE FROM dead USING (
        SELECT d.task FROM unnest(_runs) AS u (run)
        CROSS JOIN LATERAL (SELECT dead.task FROM dead WHERE dead.run = u.run LIMIT _rows) AS d
        LIMIT _rows
    ) AS d
    WHERE dead.task = d.task;
    GET DIAGNOSTICS _many = ROW_COUNT;
    IF _many = _rows THEN
        RETURN true;
    END IF;
    DELETE FROM ending WHERE ctid = ANY (ARRAY(
        SELECT e.ctid FROM unnest(_runs) AS u (run)
        CROSS JOIN LATERAL (SELECT ending.ctid FROM ending WHERE ending.run = u.run LIMIT _rows) AS e
        LIMIT _rows));
    GET DIAGNOSTICS _many = ROW_COUNT;
    IF _many = _rows THEN
        RETURN true;
    END IF;
    DELETE FROM seen USING (
        SELECT s.run, s.key FROM unnest(_runs) AS u (run)
        CROSS JOIN LATERAL (SELECT seen.run, seen.key FROM seen WHERE seen.run = u.run LIMIT _rows) AS s
        LIMIT _rows
    ) AS s
    WHERE seen.run = s.run AND seen.key = s.key;
    GET DIAGNOSTICS _many = ROW_COUNT;
    RETURN _many = _rows;
END
$$;
