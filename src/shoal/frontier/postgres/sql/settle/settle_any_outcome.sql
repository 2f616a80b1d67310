-- Give effect to each settlement whose lease still stands; the caller holds the locks of their sites. Answers which did, by their position.
CREATE FUNCTION settle_any_outcome(_now bigint, _settled settlements) RETURNS bigint[]
LANGUAGE plpgsql
AS $$
DECLARE
    _answer record;
    _lines int[];
BEGIN
    _lines := few_lines();
    WITH standing AS MATERIALIZED (
        SELECT DISTINCT ON (t.id)
               u.*, t.id, t.run, t.line, t.site, t.exit, t.place, t.auto_ack, t.cancelled,
               NOT t.cancelled AND NOT t.auto_ack AS free, NOT t.cancelled AND u.kind = 0 AS keep,
               coalesce(u.crawl_delay, t.crawl_delay) AS asked, t.delay, t.site_delay, t.crawl_delay AS known_delay,
               coalesce(u.pace, t.pace) AS slowed, t.site_probing, t.site_probe, t.slot_probe,
               coalesce(u.kind = 2 AND u.wait > 0, false) AS limited, t.site_last, t.site_begun, t.site_before,
               t.slot_at, t.slot_last, t.slot_begun, t.slot_before, t.blocked_until, t.slot_penalty
        FROM unnest(_settled.run_id, _settled.task, _settled.token, _settled.kind, _settled.started, _settled.wait,
                    _settled.penalty, _settled.requests, _settled.received, _settled.refused, _settled.duplicates,
                    _settled.crawl_delay, _settled.url, _settled.reason, _settled.group_name, _settled.n, _settled.body,
                    _settled.pace, _settled.cause, _settled.aside, _settled.extra)
             WITH ORDINALITY AS u (run_id, task, token, kind, started, wait, penalty, requests, received, refused,
                                   duplicates, crawl_delay, url, reason, group_name, n, body, pace, cause, aside, extra, nth)
        CROSS JOIN LATERAL lease_of(u.run_id, u.task, u.token) AS t
        ORDER BY t.id, u.nth
    ), ended AS (
        DELETE FROM task USING standing AS d
        WHERE task.id = d.id AND NOT (d.free AND d.kind IN (1, 2))
    ), returned AS (
        UPDATE task
        SET state = CASE WHEN b.kind = 1 OR b.aside > 0 THEN 1 ELSE 0 END,
            not_before = CASE WHEN b.kind = 1 THEN _now + coalesce(b.wait, 0) WHEN b.aside > 0 THEN _now + b.aside END,
            attempts = task.attempts + CASE b.kind WHEN 1 THEN 1 ELSE 0 END,
            extra = coalesce(b.extra, task.extra),
            token = NULL, worker = NULL, exit = NULL, lease_until = NULL
        FROM standing AS b
        WHERE task.id = b.id AND b.free AND b.kind IN (1, 2)
    ), buried AS (
        INSERT INTO dead (task, died_at, run, line, site, priority, depth, attempts, crashes, url, handler, extra, reason)
        SELECT t.id, _now, t.run, t.line, t.site, t.priority, t.depth, t.attempts + coalesce(d.wait, 0), t.crashes, t.url, t.handler,
               coalesce(d.extra, t.extra), d.reason
        FROM standing AS d CROSS JOIN LATERAL (SELECT * FROM task WHERE task.id = d.id OFFSET 0) AS t
        WHERE d.free AND d.kind = 3
    ), otherwise AS (
        INSERT INTO ending
        SELECT e.*
        FROM standing AS d
        CROSS JOIN LATERAL (SELECT * FROM task WHERE task.id = d.id OFFSET 0) AS t
        CROSS JOIN LATERAL ending_of(t.run, t.url, t.extra, CASE WHEN d.cancelled THEN 'cancelled' ELSE 'dropped' END, _now,
                                     CASE WHEN NOT d.cancelled THEN d.reason END) AS e
        WHERE NOT d.auto_ack AND (d.cancelled OR d.kind = 4)
    ), stored AS (
        INSERT INTO item (id, run, n, url, group_name, body)
        SELECT ((pg_current_xact_id()::text::bigint + (SELECT g.shift FROM ledger AS g)) << 20) + d.nth, d.run, d.n, d.url, d.group_name, d.body
        FROM standing AS d
        WHERE d.keep AND d.n > 0
    ), counted AS (
        INSERT INTO tally_change (run, line, waiting, leased, live, done, dead, dropped, cancelled, items, requests,
                                  received, retries, snoozes, duplicates, refused)
        SELECT d.run, d.line,
               count(*) FILTER (WHERE d.free AND d.kind IN (1, 2)),
               -count(*) FILTER (WHERE NOT d.auto_ack),
               -count(*),
               count(*) FILTER (WHERE d.free AND d.kind = 0),
               count(*) FILTER (WHERE d.free AND d.kind = 3),
               count(*) FILTER (WHERE d.free AND d.kind = 4),
               count(*) FILTER (WHERE d.cancelled AND NOT d.auto_ack),
               coalesce(sum(d.n) FILTER (WHERE d.keep), 0),
               coalesce(sum(d.requests), 0), coalesce(sum(d.received), 0),
               count(*) FILTER (WHERE d.free AND d.kind = 1),
               count(*) FILTER (WHERE d.free AND d.kind = 2 AND d.wait > 0),
               coalesce(sum(d.duplicates), 0), coalesce(sum(d.refused), 0)
        FROM standing AS d
        GROUP BY d.run, d.line
    ), freed AS MATERIALIZED (
        -- The lease that was granted last knows when the last request began, or that the clock stands where it stood
        -- before. For any other, the clock was already set by those granted later, to the latest moment they may begin.
        SELECT f.site, max(f.slot_at) AS slot_at, count(*) AS many,
               greatest(CASE WHEN bool_or(f.token = f.slot_last) THEN max(f.slot_before) ELSE max(f.slot_begun) END,
                        max(f.started)) AS begun_at,
               greatest(max(f.slot_before), max(f.started) FILTER (WHERE f.token <> f.slot_last)) AS begun_before,
               greatest(max(f.blocked_until), max(_now + f.wait) FILTER (WHERE f.limited)) AS blocked_until,
               bool_or(f.limited) AS limited, max(_now + f.wait) FILTER (WHERE f.limited) AS limited_until,
               coalesce(max(f.penalty) FILTER (WHERE f.nth = f.limited_nth), max(f.slot_penalty)) AS penalty,
               max(f.cause) FILTER (WHERE f.nth = f.limited_nth) AS cause, bool_or(f.token = f.slot_probe) AS probed,
               bool_or(f.token = f.slot_probe AND f.started IS NOT NULL) AS well,
               max(greatest(f.delay, f.asked, f.slowed)) FILTER (WHERE f.nth = f.last_nth) AS delay
        FROM (
            SELECT d.*, max(d.nth) FILTER (WHERE d.limited) OVER (PARTITION BY d.site, d.exit) AS limited_nth,
                   max(d.nth) OVER (PARTITION BY d.site, d.exit) AS last_nth
            FROM standing AS d
        ) AS f
        GROUP BY f.site, f.exit
    ), slots AS (
        UPDATE slot
        SET live = slot.live - f.many, last_at = _now, begun_at = f.begun_at, begun_before = f.begun_before,
            blocked_until = f.blocked_until, penalty = f.penalty, probing = f.limited OR slot.probing AND NOT f.well,
            probe = CASE WHEN f.limited OR f.probed THEN 0 ELSE slot.probe END,
            limited_at = CASE WHEN f.limited THEN _now ELSE slot.limited_at END,
            limited_until = greatest(slot.limited_until, f.limited_until),
            cause = CASE WHEN f.limited THEN coalesce(f.cause, '') ELSE slot.cause END
        FROM freed AS f
        WHERE slot.ctid = f.slot_at
    ), paced AS MATERIALIZED (
        SELECT d.site, d.site_delay,
               bool_or(d.crawl_delay IS NOT NULL OR d.pace IS NOT NULL OR d.token = d.site_probe) AS changed,
               (array_agg(d.pace ORDER BY d.nth DESC) FILTER (WHERE d.pace IS NOT NULL))[1] AS pace,
               bool_or(d.token = d.site_probe) AS probed,
               bool_or(d.token = d.site_probe AND d.started IS NOT NULL AND NOT d.limited) AS well,
               CASE WHEN d.site_delay = 0 THEN max(d.site_begun)
                    ELSE greatest(CASE WHEN bool_or(d.token = d.site_last) THEN max(d.site_before)
                                       ELSE max(d.site_begun) END, max(d.started)) END AS begun_at,
               CASE WHEN d.site_delay = 0 THEN max(d.site_before)
                    ELSE greatest(max(d.site_before), max(d.started) FILTER (WHERE d.token <> d.site_last)) END
               AS begun_before,
               coalesce((array_agg(d.crawl_delay ORDER BY d.nth DESC) FILTER (WHERE d.crawl_delay IS NOT NULL))[1],
                        max(d.known_delay)) AS crawl_delay
        FROM standing AS d
        WHERE d.site_delay > 0 OR d.crawl_delay IS NOT NULL OR d.pace IS NOT NULL OR d.token = d.site_probe
        GROUP BY d.site, d.site_delay
    ), sites AS (
        UPDATE site
        SET begun_at = p.begun_at, begun_before = p.begun_before, crawl_delay = p.crawl_delay,
            pace = coalesce(p.pace, site.pace), probe = CASE WHEN p.probed THEN 0 ELSE site.probe END,
            probing = site.probing AND NOT p.well, blocked_until = CASE WHEN p.well THEN 0 ELSE site.blocked_until END
        FROM paced AS p
        WHERE site.id = p.site
    ), moved AS (
        -- Whoever waits for one of these sites may come as early as that, but not before others.
        UPDATE visit
        SET due_at = m.due_at
        FROM (
            SELECT m.due_at, v.visit_at
            FROM (
                SELECT e.site, greatest(_now, min(e.due_at)) AS due_at
                FROM (
                    SELECT f.site, greatest(f.begun_at + f.delay, f.blocked_until) AS due_at FROM freed AS f
                    UNION ALL
                    SELECT p.site, CASE WHEN p.changed THEN _now ELSE p.begun_at + p.site_delay END FROM paced AS p
                ) AS e
                GROUP BY e.site
            ) AS m
            CROSS JOIN LATERAL visits_of(m.site, _lines) AS v
            WHERE v.due_at > m.due_at
        ) AS m
        WHERE visit.ctid = m.visit_at
    ), back AS (
        SELECT d.site, d.line, count(*)::int AS ready, min(d.place) AS floor
        FROM standing AS d
        WHERE d.free AND d.kind = 2 AND coalesce(d.aside, 0) = 0
        GROUP BY d.site, d.line
    ), limits AS MATERIALIZED (
        SELECT d.nth, d.site, coalesce(d.cause, '') AS cause,
               d.site_probing AND NOT EXISTS (
                   SELECT 1 FROM standing AS e
                   WHERE e.site = d.site AND e.nth < d.nth AND e.token = e.site_probe AND e.started IS NOT NULL
                     AND NOT e.limited) AS again
        FROM standing AS d
        WHERE cardinality(_settled.penalty) > 0 AND d.limited
    )
    SELECT (SELECT array_agg(d.nth) FROM standing AS d) AS stood,
           (SELECT array_agg(b.site) FROM back AS b) AS site, (SELECT array_agg(b.line) FROM back AS b) AS line,
           (SELECT array_agg(b.ready) FROM back AS b) AS ready, (SELECT array_agg(b.floor) FROM back AS b) AS floor,
           (SELECT array_agg(l.site ORDER BY l.nth) FROM limits AS l) AS limited,
           (SELECT array_agg(l.again ORDER BY l.nth) FROM limits AS l) AS again,
           (SELECT array_agg(l.cause ORDER BY l.nth) FROM limits AS l) AS cause
    INTO _answer;
    IF _answer.limited IS NOT NULL THEN
        PERFORM limit_whole_sites(_now, _answer.limited, _answer.again, _answer.cause);
    END IF;
    IF _answer.site IS NOT NULL THEN
        PERFORM schedule_visits(_now, _answer.site, _answer.line, _answer.ready, _answer.floor);
    END IF;
    RETURN coalesce(_answer.stood, '{}');
END
$$;
