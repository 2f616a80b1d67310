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
            SELECT run.id FROM run WHERE run.id = d.run AND run.sealed AND run.state = 'running' OFFSET 0) AS r);
    IF _runs <> '{}' THEN
        PERFORM finish_empty(_now, few_left(_runs, 500));
    END IF;
END
$$;
