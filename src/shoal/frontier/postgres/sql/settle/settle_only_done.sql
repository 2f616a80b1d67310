-- Give effect to settlements as `settle_any_outcome` does, in the usual case: each says that its task is done and tells nothing about
-- the site's pace, and each is of a site of its own. So nothing has to be added up by slot or site, and it costs less.
-- OFFSET 0: as in `claim_by_one_exit`.
CREATE FUNCTION settle_only_done(_now bigint, _settled settlements) RETURNS bigint[]
LANGUAGE plpgsql
AS $$
DECLARE
    _lines int[];
    _stood bigint[];
BEGIN
    _lines := few_lines();
    WITH standing AS MATERIALIZED (
        SELECT u.*, t.id, t.run, t.line, t.site, t.auto_ack, t.cancelled, u.started IS NOT NULL AS began,
               t.slot_at, u.token = t.slot_probe AS probed, t.blocked_until,
               greatest(CASE WHEN u.token = t.slot_last THEN t.slot_before ELSE t.slot_begun END, u.started) AS begun_at,
               greatest(t.slot_before, CASE WHEN u.token <> t.slot_last THEN u.started END) AS begun_before,
               t.site_delay, u.token = t.site_probe AS site_probed, pace_of(t.delay, t.crawl_delay, t.pace) AS pace,
               greatest(CASE WHEN u.token = t.site_last THEN t.site_before ELSE t.site_begun END, u.started) AS site_begun,
               greatest(t.site_before, CASE WHEN u.token <> t.site_last THEN u.started END) AS site_before
        FROM unnest(_settled.run_id, _settled.task, _settled.token, _settled.started, _settled.requests, _settled.received,
                    _settled.refused, _settled.duplicates, _settled.url, _settled.group_name, _settled.n, _settled.body)
             WITH ORDINALITY AS u (run_id, task, token, started, requests, received, refused, duplicates, url, group_name, n,
                                   body, nth)
        CROSS JOIN LATERAL lease_of(u.run_id, u.task, u.token) AS t
    ), ended AS (
        DELETE FROM task USING (SELECT d.id FROM standing AS d OFFSET 0) AS d WHERE task.id = d.id
    ), otherwise AS (
        INSERT INTO ending
        SELECT e.*
        FROM standing AS d
        CROSS JOIN LATERAL (SELECT * FROM task WHERE task.id = d.id OFFSET 0) AS t
        CROSS JOIN LATERAL ending_of(t.run, t.url, t.extra, 'cancelled', _now, NULL) AS e
        WHERE d.cancelled AND NOT d.auto_ack
    ), stored AS (
        INSERT INTO item (id, run, n, url, group_name, body)
        SELECT ((pg_current_xact_id()::text::bigint + (SELECT g.shift FROM ledger AS g)) << 20) + d.nth, d.run, d.n, d.url,
               d.group_name, d.body
        FROM standing AS d
        WHERE NOT d.cancelled AND d.n > 0
    ), counted AS (
        INSERT INTO tally_change (run, line, leased, live, done, cancelled, items, requests, received, duplicates, refused)
        SELECT d.run, d.line, -count(*) FILTER (WHERE NOT d.auto_ack), -count(*),
               count(*) FILTER (WHERE NOT d.cancelled AND NOT d.auto_ack),
               count(*) FILTER (WHERE d.cancelled AND NOT d.auto_ack),
               coalesce(sum(d.n) FILTER (WHERE NOT d.cancelled), 0), coalesce(sum(d.requests), 0),
               coalesce(sum(d.received), 0), coalesce(sum(d.duplicates), 0), coalesce(sum(d.refused), 0)
        FROM standing AS d
        GROUP BY d.run, d.line
    ), slots AS (
        UPDATE slot
        SET live = slot.live - 1, last_at = _now, begun_at = d.begun_at, begun_before = d.begun_before,
            probing = slot.probing AND NOT (d.probed AND d.began), probe = CASE WHEN d.probed THEN 0 ELSE slot.probe END
        FROM (SELECT d.slot_at, d.begun_at, d.begun_before, d.probed, d.began FROM standing AS d OFFSET 0) AS d
        WHERE slot.ctid = d.slot_at
    ), sites AS (
        UPDATE site
        SET begun_at = CASE WHEN d.site_delay > 0 THEN d.site_begun ELSE site.begun_at END,
            begun_before = CASE WHEN d.site_delay > 0 THEN d.site_before ELSE site.begun_before END,
            probe = CASE WHEN d.site_probed THEN 0 ELSE site.probe END,
            probing = site.probing AND NOT (d.site_probed AND d.began),
            blocked_until = CASE WHEN d.site_probed AND d.began THEN 0 ELSE site.blocked_until END
        FROM (
            SELECT d.site, d.site_delay, d.site_begun, d.site_before, d.site_probed, d.began FROM standing AS d
            WHERE d.site_delay > 0 OR d.site_probed
            OFFSET 0
        ) AS d
        WHERE site.id = d.site
    ), moved AS (
        -- Whoever waits for one of these sites may come as early as that, but not before others.
        UPDATE visit
        SET due_at = m.due_at
        FROM (
            SELECT m.due_at, v.visit_at
            FROM (
                SELECT d.site, greatest(_now, least(
                           greatest(d.begun_at + d.pace, d.blocked_until),
                           CASE WHEN d.site_probed THEN _now WHEN d.site_delay > 0 THEN d.site_begun + d.site_delay END)) AS due_at
                FROM standing AS d
            ) AS m
            CROSS JOIN LATERAL visits_of(m.site, _lines) AS v
            WHERE v.due_at > m.due_at
            OFFSET 0
        ) AS m
        WHERE visit.ctid = m.visit_at
    )
    SELECT array_agg(d.nth) INTO _stood FROM standing AS d;
    RETURN coalesce(_stood, '{}');
END
$$;
