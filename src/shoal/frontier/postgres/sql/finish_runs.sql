-- A sealed run with nothing left is finished; its results are kept from now on for as long as its policy says.
-- Looks at the runs whose counters this transaction has changed. Of two that end the last two tasks at once, neither sees
-- the other; so where little is left, the run's row is locked first, and the second looks again after the first is done.
CREATE FUNCTION finish_runs(_now bigint) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    _runs int[];
BEGIN
    _runs := ARRAY(
        SELECT r.id
        FROM (SELECT DISTINCT d.run FROM tally_change AS d WHERE d.xid = pg_current_xact_id_if_assigned()) AS d
        CROSS JOIN LATERAL (
            SELECT run.id FROM run WHERE run.id = d.run AND run.sealed AND run.state = 'running' OFFSET 0) AS r
        WHERE remaining_of(r.id) < 500);
    IF _runs <> '{}' THEN
        PERFORM 1 FROM run WHERE id = ANY (_runs) ORDER BY id FOR NO KEY UPDATE;
        UPDATE run SET state = 'finished', ended_at = _now, results_until = _now + results_ttl
        WHERE id = ANY (_runs) AND sealed AND state = 'running' AND remaining_of(id) = 0;
    END IF;
END
$$;
