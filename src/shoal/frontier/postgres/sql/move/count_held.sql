-- entry: verb
-- How many leases of a run live. Raises SH404 = no such run.
CREATE FUNCTION count_held(_run_id text) RETURNS bigint
LANGUAGE plpgsql
AS $$
DECLARE
    _number int;
BEGIN
    SELECT id INTO _number FROM run WHERE run_id = _run_id;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'no run %', _run_id USING ERRCODE = 'SH404';
    END IF;
    RETURN (SELECT coalesce(sum(t.live), 0) FROM tally AS t WHERE t.run = _number)
         + (SELECT coalesce(sum(d.live), 0) FROM tally_change AS d
            WHERE d.xid >= (SELECT g.upto FROM ledger AS g) AND d.run = _number);
END
$$;
