-- Claim from one line as `claim_by_any_exit` does, in the usual case: there is one exit, about which there is nothing to heed, and each
-- site gives it one lease at a time. So the head of each list is all that can be claimed, nothing has to be ranked or
-- added up, and it costs half. One row per lease. OFFSET 0: an UPDATE carries along the whole rows that it is joined with,
-- so they are made small first.
CREATE FUNCTION claim_by_one_exit(
    _now bigint, _horizon bigint, _line int, _auto_ack boolean, _exit text, _worker int, _tokens bigint[], _sites int[],
    _visits tid[]
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
    WITH slots AS MATERIALIZED (
        SELECT p.nth AS turn, p.site, v.ctid AS visit_at, v.ready, v.floor, s.ctid AS site_at, s.key, s.site_delay, s.lease,
               s.begun_at AS site_begun, s.probing AS site_probing, pace_of(s.delay, s.crawl_delay, s.pace) AS pace,
               site_free_at(s.site_delay, s.begun_at, s.blocked_until) AS next_at,
               k.slot_at, coalesce(k.begun_at, 0) AS begun_at, coalesce(k.blocked_until, 0) AS blocked_until,
               coalesce(k.live, 0) AS live,
               remembered_penalty(k.penalty, k.limited_until, _now)::int AS penalty,
               room_of(1, k.live, s.probing, s.probe, k.probing, k.probe) AS room,
               slot_free_at(k.begun_at, pace_of(s.delay, s.crawl_delay, s.pace), k.blocked_until) AS free_at
        FROM unnest(_sites, _visits) WITH ORDINALITY AS p (site, visit, nth)
        CROSS JOIN LATERAL (
            SELECT visit.ctid, visit.ready, visit.floor FROM visit
            WHERE visit.ctid = p.visit AND visit.site = p.site AND visit.line = _line AND visit.due_at <= _horizon
            OFFSET 0) AS v
        CROSS JOIN LATERAL (SELECT site.ctid, site.* FROM site WHERE site.id = p.site OFFSET 0) AS s
        LEFT JOIN LATERAL slot_of(p.site, _exit) AS k ON true
    ), heads AS MATERIALIZED (
        SELECT h.*, _tokens[count(*) FILTER (WHERE h.leased) OVER (ROWS UNBOUNDED PRECEDING)] AS token
        FROM (
            SELECT w.*, greatest(_now, w.next_at, w.free_at) AS start_at, start_window(w.pace, w.site_delay) AS start_window,
                   CASE WHEN w.site_delay = 0 THEN w.begun_at
                        ELSE greatest(_now, w.next_at, w.free_at) + start_window(w.pace, w.site_delay) END AS begun_after,
                   t.task_at, t.id, t.run, t.place, t.priority, t.depth, t.attempts, t.crashes, t.url, t.handler, t.extra,
                   t.expires_at,
                   r.run_id, r.state = 'paused' AS held, r.state = 'cancelled' AS cancelled,
                   r.state NOT IN ('paused', 'cancelled') AND (t.expires_at <= _now) IS TRUE AS expired,
                   coalesce(r.state NOT IN ('paused', 'cancelled') AND (t.expires_at <= _now) IS NOT TRUE, false) AS leased
            FROM slots AS w
            LEFT JOIN LATERAL (
                SELECT task.ctid AS task_at, task.* FROM task
                WHERE w.next_at <= _horizon AND w.free_at <= _horizon AND w.room > 0
                  AND task.state = 0 AND task.line = _line AND task.site = w.site AND task.place >= w.floor
                ORDER BY task.place LIMIT 1) AS t ON true
            LEFT JOIN LATERAL (SELECT run.run_id, run.state FROM run WHERE run.id = t.run OFFSET 0) AS r ON true
        ) AS h
    ), given AS (
        UPDATE task
        SET state = h.state, token = h.token, worker = h.worker, exit = h.exit, lease_until = h.lease_until
        FROM (
            SELECT h.task_at, 2 AS state, h.token, _worker AS worker, _exit AS exit, _now + h.lease AS lease_until
            FROM heads AS h
            WHERE h.leased
            UNION ALL
            SELECT h.task_at, 3, NULL, NULL, NULL, NULL FROM heads AS h WHERE h.held
        ) AS h
        WHERE task.ctid = h.task_at
    ), ended AS (
        DELETE FROM task
        USING (SELECT h.task_at FROM heads AS h WHERE h.expired OR h.cancelled OFFSET 0) AS h
        WHERE task.ctid = h.task_at
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
        WHERE h.run IS NOT NULL
        GROUP BY h.run
    ), taken AS (
        UPDATE slot
        SET begun_at = h.begun_after, begun_before = h.begun_at, live = h.live + 1, last_at = _now, last_token = h.token,
            probe = CASE WHEN slot.probing THEN h.token ELSE 0 END
        FROM (
            SELECT h.slot_at, h.begun_after, h.begun_at, h.live, h.token FROM heads AS h WHERE h.leased OFFSET 0
        ) AS h
        WHERE slot.ctid = h.slot_at
    ), first_taken AS (
        INSERT INTO slot (site, exit, begun_at, begun_before, live, last_at, last_token)
        SELECT h.site, _exit, h.begun_after, h.begun_at, 1, _now, h.token FROM heads AS h
        WHERE h.slot_at IS NULL AND h.leased
    ), paced AS (
        UPDATE site
        SET begun_at = CASE WHEN h.site_delay > 0 THEN h.begun_after ELSE site.begun_at END,
            begun_before = h.site_begun, last_token = h.token, probe = CASE WHEN h.site_probing THEN h.token ELSE 0 END
        FROM (
            SELECT h.site_at, h.site_delay, h.begun_after, h.site_begun, h.token, h.site_probing FROM heads AS h
            WHERE h.leased AND (h.site_delay > 0 OR h.site_probing)
            OFFSET 0
        ) AS h
        WHERE site.ctid = h.site_at
    ), put_off AS (
        UPDATE visit
        SET ready = h.ready, floor = h.floor, due_at = h.due_at
        FROM (
            SELECT h.visit_at, h.ready - (h.id IS NOT NULL)::int AS ready, greatest(h.place + 1, h.floor) AS floor,
                   CASE WHEN h.site_probing AND h.leased THEN _now + h.lease
                        ELSE greatest(
                            _now, CASE WHEN h.leased AND h.site_delay > 0 THEN h.begun_after + h.site_delay ELSE h.next_at END,
                            CASE WHEN h.leased OR h.room <= 0 THEN _now + greatest(h.lease, h.pace) ELSE h.free_at END)
                   END AS due_at
            FROM heads AS h
            WHERE h.id IS NULL OR h.ready > 1
            OFFSET 0
        ) AS h
        WHERE visit.ctid = h.visit_at
    ), finished AS (
        DELETE FROM visit
        USING (SELECT h.visit_at FROM heads AS h WHERE h.id IS NOT NULL AND h.ready <= 1 OFFSET 0) AS h
        WHERE visit.ctid = h.visit_at
    )
    SELECT h.id, h.token, _exit, h.start_at,
           h.start_at + CASE WHEN h.site_delay = 0 OR h.start_window = 0 THEN h.lease / 2 ELSE h.start_window END,
           _now + h.lease, h.pace, h.site_delay = 0, h.penalty, h.run_id, h.url, h.key::text, h.handler, h.priority, h.depth,
           h.attempts, h.crashes, h.extra
    FROM heads AS h
    WHERE h.leased;
END
$$;
