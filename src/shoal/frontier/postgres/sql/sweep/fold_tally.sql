-- Add up what `tally_change` has gathered. Nothing, if somebody else is doing it.
CREATE FUNCTION fold_tally() RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    _before xid8;
BEGIN
    IF NOT pg_try_advisory_xact_lock(hashtext('shoal fold'), 'tally'::regclass::oid::int) THEN
        RETURN;
    END IF;
    _before := finished_before();
    WITH gone AS MATERIALIZED (
        DELETE FROM tally_change AS d
        WHERE d.xid >= (SELECT g.upto FROM ledger AS g) AND d.xid < _before
        RETURNING d.*
    ), lines AS (
        UPDATE line SET waiting = line.waiting + g.waiting, live = line.live + g.live
        FROM (SELECT g.line, sum(g.waiting) AS waiting, sum(g.live) AS live FROM gone AS g GROUP BY g.line) AS g
        WHERE line.id = g.line AND (g.waiting <> 0 OR g.live <> 0)
    ), marked AS (
        UPDATE ledger SET upto = _before
    )
    INSERT INTO tally AS t (run, line, waiting, leased, live, done, dead, expired, dropped, cancelled, items, requests,
                            received, retries, snoozes, crashes, duplicates, refused, late, saved_requests, saved_bytes)
    SELECT g.run, g.line, sum(g.waiting), sum(g.leased), sum(g.live), sum(g.done), sum(g.dead), sum(g.expired),
           sum(g.dropped), sum(g.cancelled), sum(g.items), sum(g.requests), sum(g.received), sum(g.retries),
           sum(g.snoozes), sum(g.crashes), sum(g.duplicates), sum(g.refused), sum(g.late),
           sum(g.saved_requests), sum(g.saved_bytes)
    FROM gone AS g
    GROUP BY g.run, g.line
    ON CONFLICT (run, line) DO UPDATE SET
        waiting = t.waiting + excluded.waiting, leased = t.leased + excluded.leased, live = t.live + excluded.live,
        done = t.done + excluded.done, dead = t.dead + excluded.dead, expired = t.expired + excluded.expired,
        dropped = t.dropped + excluded.dropped, cancelled = t.cancelled + excluded.cancelled,
        items = t.items + excluded.items, requests = t.requests + excluded.requests,
        received = t.received + excluded.received, retries = t.retries + excluded.retries,
        snoozes = t.snoozes + excluded.snoozes, crashes = t.crashes + excluded.crashes,
        duplicates = t.duplicates + excluded.duplicates, refused = t.refused + excluded.refused,
        late = t.late + excluded.late, saved_requests = t.saved_requests + excluded.saved_requests,
        saved_bytes = t.saved_bytes + excluded.saved_bytes;
END
$$;
