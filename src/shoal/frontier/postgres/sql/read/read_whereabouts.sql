-- entry: look
-- Where a page is, in each run that has seen its key, newest run first: each task that is for it, and how it ended where it
-- was not done; or one row without a state. state: as of tasks, 4 = a dead letter, 5 = has ended, as `ended` says.
-- Looks through what waits for the site, what is leased, and the dead letters of the runs. _name: both names of the page.
CREATE FUNCTION read_whereabouts(_now bigint, _site text, _page text, _name bytea[], _key bytea, _run_id text)
RETURNS TABLE (
    run_id text, scraper text, run_state text, state smallint, task bigint, lane text, pool text, ahead bigint,
    not_before bigint, expires_at bigint, attempts int, crashes int, worker text, exit text, lease_until bigint, reason text,
    ended_at bigint, url text, ended text
)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    _tail text := substring(_page from '//(.*)$');
    _told text := trim('"' from to_json(_tail)::text);
BEGIN
    _now := moment(_now);
    RETURN QUERY
    WITH runs AS MATERIALIZED (
        SELECT r.id, r.run_id, r.scraper, r.state FROM run AS r
        WHERE (_run_id IS NULL OR r.run_id = _run_id)
          AND EXISTS (SELECT 1 FROM seen AS s WHERE s.run = r.id AND s.key = _key)
    ), place AS MATERIALIZED (
        SELECT s.id FROM site AS s WHERE s.key = _site
    ), found AS MATERIALIZED (
        SELECT f.*
        FROM (
            SELECT t.run, t.state, t.id, t.line, t.site, t.place, t.not_before, t.expires_at, t.attempts, t.crashes, t.worker,
                   t.exit, t.lease_until, t.url, t.extra, NULL AS reason, NULL::bigint AS died_at
            FROM place AS p JOIN visit AS v ON v.site = p.id
            JOIN task AS t ON t.state = 0 AND t.line = v.line AND t.site = p.id
            UNION ALL
            SELECT t.run, t.state, t.id, t.line, t.site, t.place, t.not_before, t.expires_at, t.attempts, t.crashes, t.worker,
                   t.exit, t.lease_until, t.url, t.extra, NULL AS reason, NULL
            FROM place AS p JOIN task AS t ON t.state IN (1, 3) AND t.site = p.id
            UNION ALL
            SELECT t.run, t.state, t.id, t.line, t.site, t.place, t.not_before, t.expires_at, t.attempts, t.crashes, t.worker,
                   t.exit, t.lease_until, t.url, t.extra, NULL AS reason, NULL
            FROM place AS p JOIN task AS t ON t.state = 2 AND t.lease_until > 0 AND t.site = p.id
            WHERE NOT (SELECT l.auto_ack FROM line AS l WHERE l.id = t.line)
            UNION ALL
            SELECT d.run, 4, d.task, d.line, d.site, 0, NULL, NULL, d.attempts, d.crashes, NULL, NULL, NULL, d.url, d.extra,
                   d.reason, d.died_at
            FROM runs AS r JOIN dead AS d ON d.run = r.id
            WHERE d.site = (SELECT p.id FROM place AS p)
        ) AS f
        JOIN runs AS r ON r.id = f.run
        WHERE CASE WHEN right(f.url, length(_tail)) = _tail OR strpos(f.extra, _told) > 0
                   THEN page_of(f.url, f.extra) = _page ELSE false END
    ), told AS (
        SELECT f.run, CASE WHEN f.state IN (0, 1, 3) AND f.expires_at <= _now THEN 5 ELSE f.state END AS state, f.id, l.lane,
               l.pool,
               CASE WHEN f.state = 0 THEN (
                   SELECT count(*) FROM task AS o
                   WHERE o.state = 0 AND o.line = f.line AND o.site = f.site AND o.place < f.place) ELSE 0 END AS ahead,
               f.not_before, f.expires_at, f.attempts, f.crashes, w.worker_id, f.exit, f.lease_until, f.reason,
               coalesce(f.died_at, f.expires_at) AS ended_at, accepted_url(f.url, f.extra) AS url, 'expired' AS ended
        FROM found AS f
        LEFT JOIN line AS l ON l.id = f.line
        LEFT JOIN worker AS w ON w.id = f.worker
        UNION ALL
        SELECT e.run, 5, NULL, NULL, NULL, 0, NULL, NULL, 0, 0, NULL, NULL, NULL, e.reason, e.ended_at,
               coalesce(e.url, _page), e.state
        FROM runs AS r JOIN ending AS e ON e.run = r.id AND e.name = ANY (_name)
    )
    SELECT r.run_id, r.scraper, r.state, t.state::smallint, t.id, t.lane, t.pool, t.ahead, t.not_before, t.expires_at,
           t.attempts, t.crashes, t.worker_id, t.exit, t.lease_until, t.reason, t.ended_at, t.url, t.ended
    FROM runs AS r
    LEFT JOIN told AS t ON t.run = r.id
    ORDER BY r.id DESC, t.state, t.id;
END
$$;
