-- Those of these runs that have fewer tasks left than that, as far as anybody has committed.
CREATE FUNCTION few_left(_runs int[], _fewer bigint) RETURNS int[]
LANGUAGE plpgsql SET enable_hashjoin = on
AS $$
BEGIN
    RETURN ARRAY(
        SELECT r.run
        FROM unnest(_runs) AS r (run)
        LEFT JOIN (
            SELECT d.run, sum(d.waiting + d.leased) AS remaining FROM tally_change AS d
            WHERE d.xid >= (SELECT g.upto FROM ledger AS g)
            GROUP BY d.run
        ) AS c ON c.run = r.run
        WHERE coalesce(c.remaining, 0) + (
            SELECT coalesce(sum(t.waiting + t.leased), 0) FROM tally AS t WHERE t.run = r.run) < _fewer);
END
$$;
