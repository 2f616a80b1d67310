-- entry: look
-- Runs with their counters, newest first. _run_id: null = all.
CREATE FUNCTION read_runs(_run_id text)
RETURNS TABLE (
    run_id text, scraper text, mode text, state text, queue text, policy text, input bytea, created_at bigint,
    ended_at bigint, move text, lanes text, counts bigint[]
)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH asked AS MATERIALIZED (
        SELECT r.* FROM run AS r WHERE _run_id IS NULL OR r.run_id = _run_id
    ), books AS MATERIALIZED (
        SELECT t.* FROM tally AS t WHERE _run_id IS NULL OR t.run = (SELECT a.id FROM asked AS a)
        UNION ALL
        SELECT d.run, d.line, d.waiting, d.leased, d.live, d.done, d.dead, d.expired, d.dropped, d.cancelled, d.items,
               d.requests, d.received, d.retries, d.snoozes, d.crashes, d.duplicates, d.refused, d.late,
               d.saved_requests, d.saved_bytes
        FROM tally_change AS d
        WHERE d.xid >= (SELECT g.upto FROM ledger AS g) AND (_run_id IS NULL OR d.run = (SELECT a.id FROM asked AS a))
    )
    SELECT a.run_id, a.scraper, a.mode, a.state, a.queue, a.policy, a.input, a.created_at, a.ended_at, a.move,
           coalesce(w.lanes, '{}')::text, coalesce(c.counts, array_fill(0::bigint, ARRAY[18]))
    FROM asked AS a
    LEFT JOIN (
        SELECT b.run,
               ARRAY[sum(b.waiting), sum(b.leased), sum(b.done), sum(b.dead), sum(b.expired), sum(b.dropped),
                     sum(b.cancelled), sum(b.items), sum(b.requests), sum(b.received), sum(b.retries), sum(b.snoozes),
                     sum(b.crashes), sum(b.duplicates), sum(b.refused), sum(b.late),
                     sum(b.saved_requests), sum(b.saved_bytes)]::bigint[] AS counts
        FROM books AS b
        GROUP BY b.run
    ) AS c ON c.run = a.id
    LEFT JOIN (
        SELECT p.run, json_object_agg(p.lane, p.remaining) AS lanes
        FROM (
            SELECT b.run, l.lane, sum(b.waiting + b.live) AS remaining
            FROM books AS b JOIN line AS l ON l.id = b.line
            GROUP BY b.run, l.lane
            HAVING sum(b.waiting + b.live) > 0
        ) AS p
        GROUP BY p.run
    ) AS w ON w.run = a.id
    ORDER BY a.id DESC;
END
$$;
