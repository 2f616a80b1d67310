-- entry: verb
-- What has come in of an arriving run; tasks also if they have expired since.
CREATE FUNCTION count_stored(_run_id text)
RETURNS TABLE (tasks bigint, letters bigint, items bigint, keys bigint)
LANGUAGE plpgsql
AS $$
DECLARE
    _number int;
BEGIN
    SELECT id INTO _number FROM run WHERE run_id = _run_id;
    RETURN QUERY
    SELECT (SELECT count(*) FROM task AS t WHERE t.run = _number)
           + (SELECT coalesce(sum(t.expired), 0) FROM tally AS t WHERE t.run = _number)::bigint
           + (SELECT coalesce(sum(d.expired), 0) FROM tally_change AS d
              WHERE d.xid >= (SELECT g.upto FROM ledger AS g) AND d.run = _number)::bigint,
           (SELECT count(*) FROM dead AS d WHERE d.run = _number),
           (SELECT count(*) FROM item AS i WHERE i.run = _number),
           (SELECT count(*) FROM seen AS s WHERE s.run = _number);
END
$$;
