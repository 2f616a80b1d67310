-- Where a URL is, in each run that has seen its key, newest run first; state 4 = a dead letter, null = it has ended otherwise.
-- Looks through what waits for the site, what is leased, and the dead letters of the runs.
CREATE FUNCTION read_whereabouts(_site text, _url text, _key bytea, _run_id text)
RETURNS TABLE (
    run_id text, scraper text, run_state text, state smallint, task bigint, lane text, pool text, ahead bigint,
    not_before bigint, expires_at bigint, attempts int, crashes int, worker text, exit text, lease_until bigint, reason text
)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH runs AS MATERIALIZED (
        SELECT r.id, r.run_id, r.scraper, r.state FROM run AS r
        WHERE (_run_id IS NULL OR r.run_id = _run_id)
          AND EXISTS (SELECT 1 FROM seen AS s WHERE s.run = r.id AND s.key = _key)
    ), place AS MATERIALIZED (
        SELECT s.id FROM site AS s WHERE s.key = _site
    ), found AS MATERIALIZED (
        SELECT DISTINCT ON (f.run) f.*
        FROM (
            SELECT t.run, t.state, t.id, t.line, t.site, t.place, t.not_before, t.expires_at, t.attempts, t.crashes, t.worker,
                   t.exit, t.lease_until, t.url, t.extra, NULL AS reason
            FROM place AS p JOIN visit AS v ON v.site = p.id
            JOIN task AS t ON t.state = 0 AND t.line = v.line AND t.site = p.id
            UNION ALL
            SELECT t.run, t.state, t.id, t.line, t.site, t.place, t.not_before, t.expires_at, t.attempts, t.crashes, t.worker,
                   t.exit, t.lease_until, t.url, t.extra, NULL AS reason
            FROM place AS p JOIN task AS t ON t.state IN (1, 3) AND t.site = p.id
            UNION ALL
            SELECT t.run, t.state, t.id, t.line, t.site, t.place, t.not_before, t.expires_at, t.attempts, t.crashes, t.worker,
                   t.exit, t.lease_until, t.url, t.extra, NULL AS reason
            FROM place AS p JOIN task AS t ON t.state = 2 AND t.lease_until > 0 AND t.site = p.id
            UNION ALL
            SELECT d.run, 4, d.task, d.line, d.site, 0, NULL, NULL, d.attempts, d.crashes, NULL, NULL, NULL, d.url, d.extra,
                   d.reason
            FROM runs AS r JOIN dead AS d ON d.run = r.id
            WHERE d.site = (SELECT p.id FROM place AS p)
        ) AS f
        JOIN runs AS r ON r.id = f.run
        WHERE f.url = _url OR f.extra::json ->> 'first_url' = _url
        ORDER BY f.run, f.state, f.id
    )
    SELECT r.run_id, r.scraper, r.state, f.state::smallint, f.id, l.lane, l.pool,
           CASE WHEN f.state = 0 THEN (
               SELECT count(*) FROM task AS o
               WHERE o.state = 0 AND o.line = f.line AND o.site = f.site AND o.place < f.place) ELSE 0 END,
           f.not_before, f.expires_at, f.attempts, f.crashes, w.worker_id, f.exit, f.lease_until, f.reason
    FROM runs AS r
    LEFT JOIN found AS f ON f.run = r.id
    LEFT JOIN line AS l ON l.id = f.line
    LEFT JOIN worker AS w ON w.id = f.worker
    ORDER BY r.id DESC;
END
$$;
