-- Claim from one line: pair the openings of each of these sites with the heads of its list, and write down what that
-- changes. The sites come in the order of their turn, and the caller holds their locks; what is known of them is read
-- here, under the lock. One row per lease.
CREATE FUNCTION draw(
    _now bigint, _horizon bigint, _line int, _auto_ack boolean, _exits text[], _want int, _worker int, _tokens bigint[],
    _sites int[]
) RETURNS TABLE (
    task bigint, token bigint, exit text, start_at bigint, start_by bigint, expires_at bigint, delay bigint,
    exclusive boolean, penalty int, run_id text, url text, site text, handler text, priority int, depth int, attempts int,
    crashes int, extra text
)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH ways AS MATERIALIZED (
        -- Each way out of each site, as it is now.
        SELECT p.nth AS turn, p.site, v.ready, v.floor, s.key, greatest(s.delay, s.crawl_delay) AS pace, s.site_delay,
               s.concurrency, s.lease, s.begun_at AS site_begun,
               CASE WHEN s.site_delay > 0 THEN s.begun_at + s.site_delay ELSE 0 END AS next_at,
               e.exit, e.nth AS way, coalesce(k.begun_at, 0) AS begun_at, coalesce(k.blocked_until, 0) AS blocked_until,
               coalesce(k.live, 0) AS live, coalesce(k.last_at, 0) AS last_at, coalesce(k.penalty, 0) AS penalty,
               greatest(coalesce(k.begun_at, 0) + greatest(s.delay, s.crawl_delay), k.blocked_until) AS free_at
        FROM unnest(_sites) WITH ORDINALITY AS p (site, nth)
        CROSS JOIN LATERAL (
            SELECT * FROM visit
            WHERE visit.site = p.site AND visit.line = _line AND visit.due_at <= _horizon OFFSET 0) AS v
        CROSS JOIN LATERAL (SELECT * FROM site WHERE site.id = p.site OFFSET 0) AS s
        CROSS JOIN unnest(_exits) WITH ORDINALITY AS e (exit, nth)
        LEFT JOIN LATERAL (SELECT * FROM slot WHERE slot.site = p.site AND slot.exit = e.exit OFFSET 0) AS k ON true
    ), openings AS (
        -- Each possible lease by its slot, least recently used slot first; slots take turns.
        SELECT w.*, row_number() OVER (PARTITION BY w.turn ORDER BY g.copy, w.last_at, w.way) AS nth
        FROM ways AS w
        CROSS JOIN LATERAL generate_series(
            1, CASE WHEN w.pace > 0 THEN 1 ELSE least(w.concurrency - w.live, _want, w.ready) END) AS g (copy)
        WHERE w.next_at <= _horizon AND w.free_at <= _horizon AND w.live < w.concurrency
    ), chosen AS (
        SELECT *
        FROM (
            SELECT o.*, row_number() OVER (ORDER BY o.turn, o.nth) AS rank
            FROM openings AS o
            WHERE o.nth <= CASE WHEN o.site_delay > 0 THEN least(1, o.ready) ELSE o.ready END
        ) AS o
        WHERE o.rank <= _want
    ), asked AS MATERIALIZED (
        SELECT c.turn, c.site, c.floor, c.key, c.pace, c.site_delay, c.concurrency, c.lease, c.site_begun, c.next_at,
               count(*) AS many, array_agg(c.exit ORDER BY c.nth) AS exits, array_agg(c.begun_at ORDER BY c.nth) AS begun,
               array_agg(c.free_at ORDER BY c.nth) AS free, array_agg(c.penalty ORDER BY c.nth) AS penalties
        FROM chosen AS c
        GROUP BY c.turn, c.site, c.floor, c.key, c.pace, c.site_delay, c.concurrency, c.lease, c.site_begun, c.next_at
    ), heads AS MATERIALIZED (
        SELECT a.turn, a.site, a.key, a.pace, a.site_delay, a.lease, a.site_begun, h.nth,
               a.exits[h.nth] AS exit, a.begun[h.nth] AS begun_at, a.penalties[h.nth] AS penalty,
               greatest(_now, a.next_at, a.free[h.nth]) AS start_at,
               a.concurrency = 1 AND a.site_delay = 0 AS exclusive,
               CASE WHEN least(nullif(a.pace, 0), nullif(a.site_delay, 0)) IS NULL THEN 0
                    ELSE greatest(20, least(least(nullif(a.pace, 0), nullif(a.site_delay, 0)) / 20, 200)) END AS start_window,
               h.id, h.run, h.place, h.priority, h.depth, h.attempts, h.crashes, h.url, h.handler, h.extra, r.run_id,
               r.state = 'paused' AS held, r.state = 'cancelled' AS cancelled,
               r.state <> 'paused' AND r.state <> 'cancelled' AND (h.expires_at <= _now) IS TRUE AS expired,
               r.state <> 'paused' AND r.state <> 'cancelled' AND (h.expires_at <= _now) IS NOT TRUE AS leased
        FROM asked AS a
        CROSS JOIN LATERAL (
            SELECT row_number() OVER () AS nth, t.*
            FROM (
                SELECT * FROM task AS t
                WHERE t.state = 0 AND t.line = _line AND t.site = a.site AND t.place >= a.floor
                ORDER BY t.place LIMIT a.many
            ) AS t
        ) AS h
        CROSS JOIN LATERAL (SELECT run.run_id, run.state FROM run WHERE run.id = h.run OFFSET 0) AS r
    ), leased AS MATERIALIZED (
        SELECT h.*, _tokens[row_number() OVER (ORDER BY h.turn, h.nth)] AS token,
               CASE WHEN h.exclusive THEN h.begun_at ELSE h.start_at + h.start_window END AS begun_after
        FROM heads AS h
        WHERE h.leased
    ), given AS (
        UPDATE task
        SET state = 2, token = l.token, worker = _worker, exit = l.exit, lease_until = _now + l.lease
        FROM leased AS l
        WHERE task.id = l.id
    ), aside AS (
        UPDATE task SET state = 3 FROM heads AS h WHERE task.id = h.id AND h.held
    ), ended AS (
        DELETE FROM task USING heads AS h WHERE task.id = h.id AND (h.expired OR h.cancelled)
    ), counted AS (
        INSERT INTO tally_change (run, line, waiting, live, leased, done, expired, cancelled)
        SELECT h.run, _line, -count(*) FILTER (WHERE NOT h.held), count(*) FILTER (WHERE h.leased),
               CASE WHEN _auto_ack THEN 0 ELSE count(*) FILTER (WHERE h.leased) END,
               CASE WHEN _auto_ack THEN count(*) FILTER (WHERE h.leased) ELSE 0 END,
               count(*) FILTER (WHERE h.expired), count(*) FILTER (WHERE h.cancelled)
        FROM heads AS h
        GROUP BY h.run
    ), taken AS (
        INSERT INTO slot (site, exit, begun_at, begun_before, live, last_at, last_token)
        SELECT l.site, l.exit, max(l.begun_after), CASE WHEN count(*) > 1 THEN max(l.begun_after) ELSE max(l.begun_at) END,
               count(*), _now, (array_agg(l.token ORDER BY l.nth DESC))[1]
        FROM leased AS l
        GROUP BY l.site, l.exit
        ON CONFLICT (site, exit) DO UPDATE
        SET begun_at = excluded.begun_at, begun_before = excluded.begun_before, live = slot.live + excluded.live,
            last_at = excluded.last_at, last_token = excluded.last_token
    ), paced AS (
        UPDATE site
        SET begun_at = l.begun_after, begun_before = l.site_begun, last_token = l.token
        FROM leased AS l
        WHERE site.id = l.site AND l.site_delay > 0
    ), slots AS (
        -- The slots as they are now. Sites beyond the one that filled the batch have not been looked at.
        SELECT b.turn, b.site, max(b.concurrency) AS concurrency, max(b.lease) AS lease, max(b.ready) AS ready,
               max(b.live) + sum(b.taken) AS live, sum(b.met) AS met, max(b.floor) AS floor, max(b.place) AS place,
               CASE WHEN max(b.begun_after) IS NULL THEN max(b.free_at)
                    ELSE greatest(max(b.begun_after) + max(b.pace), max(b.blocked_until)) END AS free_at,
               CASE WHEN max(b.begun_after) IS NOT NULL AND max(b.site_delay) > 0
                    THEN max(b.begun_after) + max(b.site_delay) ELSE max(b.next_at) END AS next_at
        FROM (
            SELECT w.turn, w.site, w.exit, w.concurrency, w.lease, w.ready, w.floor, w.live, w.pace, w.site_delay,
                   w.blocked_until, w.free_at, w.next_at, 0 AS taken, 0 AS met, NULL::bigint AS begun_after,
                   NULL::bigint AS place
            FROM ways AS w
            WHERE w.turn <= (SELECT CASE WHEN count(*) < _want THEN cardinality(_sites) ELSE max(c.turn) END FROM chosen AS c)
            UNION ALL
            SELECT h.turn, h.site, h.exit, NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL, h.leased::int, 1,
                   CASE WHEN h.leased THEN CASE WHEN h.exclusive THEN h.begun_at ELSE h.start_at + h.start_window END END,
                   h.place
            FROM heads AS h
        ) AS b
        GROUP BY b.turn, b.site, b.exit
    ), visits AS MATERIALIZED (
        SELECT s.site, max(s.ready) - sum(s.met) AS ready, greatest(max(s.place) + 1, max(s.floor)) AS floor,
               greatest(max(s.next_at), min(CASE WHEN s.live >= s.concurrency THEN _now + s.lease ELSE s.free_at END), _now)
               AS due_at
        FROM slots AS s
        GROUP BY s.site
    ), put_off AS (
        UPDATE visit
        SET due_at = v.due_at, ready = v.ready, floor = v.floor
        FROM visits AS v
        WHERE visit.site = v.site AND visit.line = _line AND v.ready > 0
    ), finished AS (
        DELETE FROM visit USING visits AS v WHERE visit.site = v.site AND visit.line = _line AND v.ready <= 0
    )
    SELECT l.id, l.token, l.exit, l.start_at,
           l.start_at + CASE WHEN l.exclusive OR l.start_window = 0 THEN l.lease / 2 ELSE l.start_window END,
           _now + l.lease, l.pace, l.exclusive, l.penalty, l.run_id, l.url, l.key, l.handler, l.priority, l.depth, l.attempts,
           l.crashes, l.extra
    FROM leased AS l
    ORDER BY l.turn, l.nth;
END
$$;
