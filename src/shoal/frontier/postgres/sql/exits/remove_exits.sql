-- entry: verb
-- `remove` of the book of exits. Answers how many there were.
CREATE FUNCTION remove_exits(_name text[]) RETURNS bigint
LANGUAGE plpgsql
AS $$
DECLARE
    _many bigint;
BEGIN
    PERFORM 1 FROM exit_book WHERE name = ANY (_name) ORDER BY name FOR UPDATE;
    DELETE FROM exit_book WHERE name = ANY (_name);
    GET DIAGNOSTICS _many = ROW_COUNT;
    RETURN _many;
END
$$;
