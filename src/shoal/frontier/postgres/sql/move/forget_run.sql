-- entry: verb
-- Delete some of what belongs to a run that was cancelled, at most so many of each kind; and at last the run itself.
-- Answers whether there may be more.
CREATE FUNCTION forget_run(_run_id text, _most int) RETURNS boolean
LANGUAGE plpgsql
AS $$
DECLARE
    _number int;
    _many int;
    _done int := 0;
BEGIN
    SELECT id INTO _number FROM run WHERE run_id = _run_id AND state = 'cancelled';
    DELETE FROM seen WHERE run = _number AND key = ANY (
        ARRAY(SELECT s.key FROM seen AS s WHERE s.run = _number LIMIT _most));
    GET DIAGNOSTICS _many = ROW_COUNT;
    _done := _done + _many;
    DELETE FROM item WHERE run = _number AND id = ANY (
        ARRAY(SELECT i.id FROM item AS i WHERE i.run = _number LIMIT _most));
    GET DIAGNOSTICS _many = ROW_COUNT;
    _done := _done + _many;
    DELETE FROM dead WHERE task = ANY (ARRAY(SELECT d.task FROM dead AS d WHERE d.run = _number LIMIT _most));
    GET DIAGNOSTICS _many = ROW_COUNT;
    _done := _done + _many;
    DELETE FROM ending WHERE ctid = ANY (ARRAY(SELECT e.ctid FROM ending AS e WHERE e.run = _number LIMIT _most));
    GET DIAGNOSTICS _many = ROW_COUNT;
    _done := _done + _many;
    IF _done = 0 THEN
        DELETE FROM tally WHERE run = _number;
        DELETE FROM run WHERE id = _number;
    END IF;
    RETURN _done > 0;
END
$$;
