-- Runs with nothing left that nobody has finished: their last tasks were ended by many at once.
CREATE FUNCTION finish_forgotten(_now bigint) RETURNS void
LANGUAGE plpgsql SET enable_hashjoin = on
AS $$
DECLARE
    _runs int[];
BEGIN
    _runs := ARRAY(
        SELECT r.id
        FROM run AS r
        LEFT JOIN (
            SELECT d.run, sum(d.waiting + d.leased) AS remaining FROM tally_change AS d
            WHERE d.xid >= (SELECT g.upto FROM ledger AS g)
            GROUP BY d.run
        ) AS c ON c.run = r.id
        WHERE r.state = 'running' AND r.sealed
          AND coalesce(c.remaining, 0) + (
              SELECT coalesce(sum(t.waiting + t.leased), 0) FROM tally AS t WHERE t.run = r.id) = 0);
    IF _runs <> '{}' THEN
        PERFORM 1 FROM run WHERE id = ANY (_runs) ORDER BY id FOR NO KEY UPDATE;
        UPDATE run SET state = 'finished', ended_at = _now, results_until = _now + results_ttl
        WHERE id = ANY (_runs) AND sealed AND state = 'running' AND remaining_of(id) = 0;
    END IF;
END
$$;
