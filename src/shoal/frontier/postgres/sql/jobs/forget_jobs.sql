-- Forget that there were these jobs; one whose counters are still being added up stays for now. Answers how many went.
CREATE FUNCTION forget_jobs(_runs int[]) RETURNS int
LANGUAGE plpgsql SET enable_hashjoin = on
AS $$
BEGIN
    _runs := ARRAY(
        SELECT u.run FROM unnest(_runs) AS u (run)
        LEFT JOIN (
            SELECT DISTINCT d.run FROM tally_change AS d WHERE d.xid >= (SELECT g.upto FROM ledger AS g)
        ) AS d ON d.run = u.run
        WHERE d.run IS NULL);
    DELETE FROM tally WHERE run = ANY (_runs);
    DELETE FROM job WHERE run = ANY (_runs);
    DELETE FROM run WHERE id = ANY (_runs);
    RETURN cardinality(_runs);
END
$$;
