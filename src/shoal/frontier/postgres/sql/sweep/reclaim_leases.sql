-- End lost leases. Where the owner is known to be dead, its last request was sent before now: the slot waits until the
-- target has seen it, and one delay. Otherwise it may be alive and slow: the slot waits until anything it may have started
-- has surely ended.
CREATE FUNCTION reclaim_leases(
    _now bigint, _task bigint[], _gone int[], _read int[], _hand bigint[],
    OUT returned int, OUT buried int, OUT cancelled int
)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    _answer record;
BEGIN
    returned := 0;
    buried := 0;
    cancelled := 0;
    IF cardinality(_task) = 0 THEN
        RETURN;
    END IF;
    PERFORM 1 FROM site
    WHERE id = ANY (ARRAY(SELECT DISTINCT t.site FROM task AS t WHERE t.id = ANY (_task))) ORDER BY id FOR NO KEY UPDATE;
    WITH lost AS MATERIALIZED (
        SELECT t.id, t.token, t.run, t.line, t.site, t.exit, t.place, t.crashes, l.auto_ack, r.cancelled, r.most,
               t.worker = ANY (_gone) AS known_dead, t.charged, t.lease_until, s.pace, s.hard_timeout
        FROM (
            SELECT *, (NOT worker = ANY (_read) OR id = ANY (_hand))::int AS charged FROM task
            WHERE id = ANY (_task) AND token IS NOT NULL AND (lease_until <= _now OR worker = ANY (_gone))
        ) AS t
        CROSS JOIN LATERAL (
            SELECT run.state = 'cancelled' AS cancelled, run.crashes AS most FROM run WHERE run.id = t.run OFFSET 0) AS r
        CROSS JOIN LATERAL (SELECT line.auto_ack FROM line WHERE line.id = t.line OFFSET 0) AS l
        CROSS JOIN LATERAL (
            SELECT pace_of(site.delay, site.crawl_delay, site.pace) AS pace, site.hard_timeout FROM site
            WHERE site.id = t.site OFFSET 0) AS s
    ), judged AS MATERIALIZED (
        SELECT l.*,
               CASE WHEN l.auto_ack THEN 'gone' WHEN l.cancelled THEN 'cancelled'
                    WHEN l.charged = 1 AND l.crashes + 1 >= l.most THEN 'buried' ELSE 'returned' END AS fate
        FROM lost AS l
    ), letters AS (
        INSERT INTO dead (task, died_at, run, line, site, priority, depth, attempts, crashes, url, handler, extra, reason)
        SELECT t.id, _now, t.run, t.line, t.site, t.priority, t.depth, t.attempts, t.crashes + j.charged, t.url, t.handler,
               t.extra, format('{"blame":"worker","text":"its worker died %s times while it had this task in hand",'
                               '"detail":null}', j.crashes + 1)
        FROM judged AS j CROSS JOIN LATERAL (SELECT * FROM task WHERE task.id = j.id OFFSET 0) AS t
        WHERE j.fate = 'buried'
    ), otherwise AS (
        INSERT INTO ending
        SELECT e.*
        FROM judged AS j
        CROSS JOIN LATERAL (SELECT * FROM task WHERE task.id = j.id OFFSET 0) AS t
        CROSS JOIN LATERAL ending_of(t.run, t.url, t.extra, 'cancelled', _now, NULL) AS e
        WHERE j.fate = 'cancelled'
    ), ended AS (
        DELETE FROM task USING judged AS j WHERE task.id = j.id AND j.fate <> 'returned'
    ), again AS (
        UPDATE task SET state = 0, crashes = task.crashes + j.charged, token = NULL, worker = NULL, exit = NULL,
                        lease_until = NULL
        FROM judged AS j
        WHERE task.id = j.id AND j.fate = 'returned'
    ), counted AS (
        INSERT INTO tally_change (run, line, live, leased, waiting, crashes, cancelled, dead)
        SELECT j.run, j.line, -count(*), -count(*) FILTER (WHERE NOT j.auto_ack),
               count(*) FILTER (WHERE j.fate = 'returned'),
               coalesce(sum(j.charged) FILTER (WHERE NOT j.auto_ack), 0),
               count(*) FILTER (WHERE j.fate = 'cancelled'), count(*) FILTER (WHERE j.fate = 'buried')
        FROM judged AS j
        GROUP BY j.run, j.line
    ), freed AS (
        UPDATE slot SET live = slot.live - f.many, blocked_until = greatest(slot.blocked_until, f.free_at),
                        probe = CASE WHEN slot.probe = ANY (f.tokens) THEN 0 ELSE slot.probe END
        FROM (
            SELECT j.site, j.exit, count(*) AS many, array_agg(j.token) AS tokens,
                   max(CASE WHEN NOT j.known_dead THEN j.lease_until + j.hard_timeout
                            WHEN j.pace > 0 THEN _now + greatest({{TRANSIT_LEAST}}, j.pace / {{TRANSIT_SHARE}})
                            ELSE _now END + j.pace) AS free_at,
                   max(j.pace) AS pace
            FROM judged AS j
            GROUP BY j.site, j.exit
        ) AS f
        WHERE slot.site = f.site AND slot.exit = f.exit
        RETURNING slot.site, greatest(slot.blocked_until, slot.begun_at + f.pace) AS free_at
    ), sites AS (
        UPDATE site SET probe = 0 FROM judged AS j WHERE site.id = j.site AND site.probe = j.token RETURNING site.id
    ), moved AS (
        UPDATE visit SET due_at = m.due_at
        FROM (
            SELECT f.site, greatest(_now, min(f.free_at)) AS due_at
            FROM (SELECT f.site, f.free_at FROM freed AS f UNION ALL SELECT s.id, _now FROM sites AS s) AS f
            GROUP BY f.site
        ) AS m
        WHERE visit.site = m.site AND visit.due_at > m.due_at
    ), back AS (
        SELECT j.site, j.line, count(*)::int AS ready, min(j.place) AS floor
        FROM judged AS j
        WHERE j.fate = 'returned'
        GROUP BY j.site, j.line
    )
    SELECT (SELECT count(*) FROM judged AS j WHERE j.fate = 'returned') AS returned,
           (SELECT count(*) FROM judged AS j WHERE j.fate = 'buried') AS buried,
           (SELECT count(*) FROM judged AS j WHERE j.fate = 'cancelled') AS cancelled,
           (SELECT array_agg(b.site) FROM back AS b) AS site, (SELECT array_agg(b.line) FROM back AS b) AS line,
           (SELECT array_agg(b.ready) FROM back AS b) AS ready, (SELECT array_agg(b.floor) FROM back AS b) AS floor
    INTO _answer;
    PERFORM schedule_visits(_now, _answer.site, _answer.line, _answer.ready, _answer.floor);
    returned := _answer.returned;
    buried := _answer.buried;
    cancelled := _answer.cancelled;
END
$$;
