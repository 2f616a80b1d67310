-- How many tasks of a run have not ended, as far as anybody has committed.
CREATE FUNCTION remaining_of(_run int) RETURNS bigint
LANGUAGE plpgsql
AS $$
BEGIN
    RETURN (SELECT coalesce(sum(t.waiting + t.leased), 0) FROM tally AS t WHERE t.run = _run)
         + (SELECT coalesce(sum(d.waiting + d.leased), 0) FROM tally_change AS d
            WHERE d.xid >= (SELECT g.upto FROM ledger AS g) AND d.run = _run);
END
$$;
