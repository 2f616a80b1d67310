-- Before when no visit of a line is due.
CREATE FUNCTION floor_of(_line int) RETURNS bigint
LANGUAGE plpgsql
AS $$
BEGIN
    RETURN coalesce(
        (SELECT f.floor FROM line_floor AS f WHERE f.line = _line ORDER BY f.line DESC, f.at DESC LIMIT 1), 0);
END
$$;
