-- Claim from one line: pair the openings of each of these sites with the heads of its list, and write down what that
-- changes. The sites come in the order of their turn, and the caller holds their locks; what is known of them is read
-- here, under the lock; a visit that has moved from its place since then is left for the next time. One row per lease.
-- _rooms: how many leases may still leave by each exit, null = any number. _look_at: no visit is put off for longer than
-- that; null = as long as need be. _own: other workers have other exits, so visits stay due, behind those not looked at.
CREATE FUNCTION claim_by_any_exit(
    _now bigint, _horizon bigint, _line int, _auto_ack boolean, _exits text[], _rooms int[], _look_at bigint,
    _own boolean, _want int, _worker int, _tokens bigint[], _sites int[], _visits tid[]
) RETURNS TABLE (
    task bigint, token bigint, exit text, start_at bigint, start_by bigint, expires_at bigint, delay bigint,
    exclusive boolean, penalty int, run_id text, url text, site text, handler text, priority int, depth int, attempts int,
    crashes int, extra text
)
LANGUAGE plpgsql SET enable_hashjoin = on
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH openings AS MATERIALIZED (
        -- Each exit of each site, as its slot is now. Rows are remembered by their place in the table (ctid): under the lock
        -- of the site nobody else moves them.
        SELECT p.nth AS turn, p.site, s.ctid AS site_at, v.ctid AS visit_at, v.ready, v.floor, s.key,
               pace_of(s.delay, s.crawl_delay, s.pace) AS pace, s.site_delay, s.concurrency, s.lease,
               s.begun_at AS site_begun, s.probing AS site_probing,
               site_free_at(s.site_delay, s.begun_at, s.blocked_until) AS next_at,
               e.exit, e.exit_room, e.nth AS exit_nth, k.slot_at, coalesce(k.begun_at, 0) AS begun_at,
               coalesce(k.blocked_until, 0) AS blocked_until, coalesce(k.live, 0) AS live,
               coalesce(k.last_at, 0) AS last_at,
               remembered_penalty(k.penalty, k.limited_until, _now)::int AS penalty,
               room_of(s.concurrency, k.live, s.probing, s.probe, k.probing, k.probe) AS room,
               slot_free_at(k.begun_at, pace_of(s.delay, s.crawl_delay, s.pace), k.blocked_until) AS free_at
        FROM unnest(_sites, _visits) WITH ORDINALITY AS p (site, visit, nth)
        CROSS JOIN LATERAL (
            SELECT visit.ctid, visit.ready, visit.floor FROM visit
            WHERE visit.ctid = p.visit AND visit.site = p.site AND visit.line = _line AND visit.due_at <= _horizon
            OFFSET 0) AS v
        CROSS JOIN LATERAL (SELECT site.ctid, site.* FROM site WHERE site.id = p.site OFFSET 0) AS s
        CROSS JOIN unnest(_exits, _rooms) WITH ORDINALITY AS e (exit, exit_room, nth)
        LEFT JOIN LATERAL slot_of(p.site, e.exit) AS k ON true
    ), chosen AS MATERIALIZED (
        -- Each possible lease by its slot, least recently used slot first; slots take turns.
        SELECT *
        FROM (
            SELECT o.*, row_number() OVER (ORDER BY o.turn, o.nth) AS rank
            FROM (
                SELECT w.*, row_number() OVER (PARTITION BY w.turn ORDER BY w.copy, w.last_at, w.exit_nth) AS nth
                FROM (
                    SELECT w.*, g.copy, row_number() OVER (PARTITION BY w.exit ORDER BY w.turn, g.copy) AS by_exit
                    FROM openings AS w
                    CROSS JOIN LATERAL generate_series(
                        1, CASE WHEN w.pace > 0 THEN 1 ELSE least(w.room, _want, w.ready) END) AS g (copy)
                    WHERE w.next_at <= _horizon AND w.free_at <= _horizon AND w.room > 0
                ) AS w
                WHERE (w.by_exit > w.exit_room) IS NOT TRUE
            ) AS o
            WHERE o.nth <= CASE WHEN o.site_delay > 0 OR o.site_probing THEN least(1, o.ready) ELSE o.ready END
        ) AS o
        WHERE o.rank <= _want
    ), heads AS MATERIALIZED (
        SELECT c.turn, c.site, c.site_at, c.slot_at, c.key, c.exit, c.pace, c.site_delay, c.lease, c.site_begun, c.begun_at,
               c.site_probing, c.penalty, c.nth, greatest(_now, c.next_at, c.free_at) AS start_at,
               c.concurrency = 1 AND c.site_delay = 0 AS exclusive, w.start_window,
               h.task_at, h.id, h.run, h.place, h.priority, h.depth, h.attempts, h.crashes, h.url, h.handler, h.extra, h.expires_at,
               r.run_id, r.state = 'paused' AS held, r.state = 'cancelled' AS cancelled,
               r.state NOT IN ('paused', 'cancelled') AND (h.expires_at <= _now) IS TRUE AS expired,
               r.state NOT IN ('paused', 'cancelled') AND (h.expires_at <= _now) IS NOT TRUE AS leased,
               _tokens[count(*) FILTER (WHERE r.state NOT IN ('paused', 'cancelled') AND (h.expires_at <= _now) IS NOT TRUE)
                       OVER (ORDER BY c.rank)] AS token,
               CASE WHEN c.concurrency = 1 AND c.site_delay = 0 THEN c.begun_at
                    ELSE greatest(_now, c.next_at, c.free_at) + w.start_window END AS begun_after
        FROM (
            SELECT a.turn, h.*
            FROM (SELECT c.turn, c.site, c.floor, count(*) AS many FROM chosen AS c GROUP BY c.turn, c.site, c.floor) AS a
            CROSS JOIN LATERAL (
                SELECT row_number() OVER () AS nth, t.*
                FROM (
                    SELECT task.ctid AS task_at, task.* FROM task
                    WHERE task.state = 0 AND task.line = _line AND task.site = a.site AND task.place >= a.floor
                    ORDER BY task.place LIMIT a.many
                ) AS t
            ) AS h
        ) AS h
        JOIN chosen AS c ON c.turn = h.turn AND c.nth = h.nth
        CROSS JOIN LATERAL (SELECT run.run_id, run.state FROM run WHERE run.id = h.run OFFSET 0) AS r
        CROSS JOIN LATERAL (SELECT start_window(c.pace, c.site_delay) AS start_window) AS w
    ), given AS (
        UPDATE task
        SET state = 2, token = h.token, worker = _worker, exit = h.exit, lease_until = _now + h.lease
        FROM heads AS h
        WHERE task.ctid = h.task_at AND h.leased
    ), aside AS (
        UPDATE task SET state = 3 FROM heads AS h WHERE task.ctid = h.task_at AND h.held
    ), ended AS (
        DELETE FROM task USING heads AS h WHERE task.ctid = h.task_at AND (h.expired OR h.cancelled)
    ), otherwise AS (
        INSERT INTO ending
        SELECT e.*
        FROM heads AS h
        CROSS JOIN LATERAL ending_of(h.run, h.url, h.extra, CASE WHEN h.expired THEN 'expired' ELSE 'cancelled' END,
                                     CASE WHEN h.expired THEN h.expires_at ELSE _now END, NULL) AS e
        WHERE h.expired OR h.cancelled
    ), counted AS (
        INSERT INTO tally_change (run, line, waiting, live, leased, done, expired, cancelled)
        SELECT h.run, _line, -count(*) FILTER (WHERE NOT h.held), count(*) FILTER (WHERE h.leased),
               CASE WHEN _auto_ack THEN 0 ELSE count(*) FILTER (WHERE h.leased) END,
               CASE WHEN _auto_ack THEN count(*) FILTER (WHERE h.leased) ELSE 0 END,
               count(*) FILTER (WHERE h.expired), count(*) FILTER (WHERE h.cancelled)
        FROM heads AS h
        GROUP BY h.run
    ), slots AS MATERIALIZED (
        -- The slots as they are now. Sites beyond the one that filled the batch have not been looked at.
        SELECT b.turn, b.site, b.exit, max(b.visit_at) AS visit_at, max(b.slot_at) AS slot_at,
               max(b.room) - sum(b.taken) AS room, max(b.exit_room) AS exit_room, bool_or(b.site_probing) AS site_probing,
               max(b.lease) AS lease, max(b.pace) AS pace, max(b.ready) AS ready, max(b.floor) AS floor,
               max(b.live) + sum(b.taken) AS live, sum(b.taken) AS taken, sum(b.met) AS met, max(b.place) AS place,
               max(b.begun_after) AS begun_at, CASE WHEN sum(b.taken) > 1 THEN max(b.begun_after) ELSE max(b.begun_at) END
               AS begun_before,
               max(b.last_token) AS last_token,
               CASE WHEN sum(b.taken) = 0 THEN max(b.free_at)
                    ELSE greatest(max(b.begun_after) + max(b.pace), max(b.blocked_until)) END AS free_at,
               CASE WHEN sum(b.taken) > 0 AND max(b.site_delay) > 0 THEN max(b.begun_after) + max(b.site_delay)
                    ELSE max(b.next_at) END AS next_at
        FROM (
            SELECT w.turn, w.site, w.exit, w.visit_at, w.slot_at, w.room, w.exit_room, w.site_probing, w.lease, w.ready, w.floor, w.live, w.pace,
                   w.site_delay, w.blocked_until, w.free_at, w.next_at, w.begun_at, 0 AS taken, 0 AS met,
                   NULL::bigint AS begun_after, NULL::bigint AS place, NULL::bigint AS last_token
            FROM openings AS w
            WHERE w.turn <= (SELECT CASE WHEN count(*) < _want THEN cardinality(_sites) ELSE max(c.turn) END FROM chosen AS c)
            UNION ALL
            SELECT h.turn, h.site, h.exit, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL,
                   h.leased::int, 1, CASE WHEN h.leased THEN h.begun_after END, h.place,
                   CASE WHEN h.leased THEN last_value(h.token) OVER (
                       PARTITION BY h.turn, h.exit, h.leased ORDER BY h.nth
                       ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) END
            FROM heads AS h
        ) AS b
        GROUP BY b.turn, b.site, b.exit
    ), taken AS (
        UPDATE slot
        SET begun_at = s.begun_at, begun_before = s.begun_before, live = s.live, last_at = _now, last_token = s.last_token,
            probe = CASE WHEN slot.probing THEN s.last_token ELSE 0 END
        FROM slots AS s
        WHERE slot.ctid = s.slot_at AND s.taken > 0
    ), first_taken AS (
        INSERT INTO slot (site, exit, begun_at, begun_before, live, last_at, last_token)
        SELECT s.site, s.exit, s.begun_at, s.begun_before, s.live, _now, s.last_token
        FROM slots AS s
        WHERE s.slot_at IS NULL AND s.taken > 0
    ), paced AS (
        UPDATE site
        SET begun_at = CASE WHEN h.site_delay > 0 THEN h.begun_after ELSE site.begun_at END,
            begun_before = h.site_begun, last_token = h.token, probe = CASE WHEN h.site_probing THEN h.token ELSE 0 END
        FROM heads AS h
        WHERE site.ctid = h.site_at AND h.leased AND (h.site_delay > 0 OR h.site_probing)
    ), visits AS MATERIALIZED (
        SELECT max(s.visit_at) AS visit_at, max(s.ready) - sum(s.met) AS ready,
               greatest(max(s.place) + 1, max(s.floor)) AS floor,
               CASE WHEN _own THEN _now
                    WHEN bool_or(s.site_probing) AND sum(s.taken) > 0 THEN _now + max(s.lease)
                    ELSE greatest(max(s.next_at), _now, least(_look_at, min(
                        CASE WHEN s.room <= 0 THEN _now + greatest(s.lease, s.pace)
                             WHEN s.exit_room IS NOT NULL
                                  AND s.exit_room <= (SELECT count(*) FROM heads AS h WHERE h.exit = s.exit AND h.leased)
                             THEN greatest(s.free_at, _now + 5000)
                             ELSE s.free_at END))) END AS due_at
        FROM slots AS s
        GROUP BY s.turn
    ), put_off AS (
        UPDATE visit
        SET due_at = v.due_at, ready = v.ready, floor = v.floor
        FROM visits AS v
        WHERE visit.ctid = v.visit_at AND v.ready > 0
    ), finished AS (
        DELETE FROM visit USING visits AS v WHERE visit.ctid = v.visit_at AND v.ready <= 0
    )
    SELECT h.id, h.token, h.exit, h.start_at,
           h.start_at + CASE WHEN h.exclusive OR h.start_window = 0 THEN h.lease / 2 ELSE h.start_window END,
           _now + h.lease, h.pace, h.exclusive, h.penalty, h.run_id, h.url, h.key::text, h.handler, h.priority, h.depth,
           h.attempts, h.crashes, h.extra
    FROM heads AS h
    WHERE h.leased
    ORDER BY h.turn, h.nth;
END
$$;
