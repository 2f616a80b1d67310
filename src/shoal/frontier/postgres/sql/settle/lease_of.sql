-- A lease that stands: its task, with what is known of its run, its line, its site and its slot; nothing, if it does not.
CREATE FUNCTION lease_of(_run_id text, _task bigint, _token bigint)
RETURNS TABLE (
    id bigint, run int, line int, site int, exit text, place bigint, auto_ack boolean, cancelled boolean,
    delay bigint, crawl_delay bigint, pace bigint, site_delay bigint, site_probing boolean, site_probe bigint,
    site_last bigint, site_begun bigint, site_before bigint,
    slot_at tid, slot_probe bigint, slot_last bigint, slot_begun bigint, slot_before bigint, slot_penalty int,
    blocked_until bigint
)
LANGUAGE sql STABLE ROWS 1  -- a part of the statements that use it
AS $$
    SELECT t.id, t.run, t.line, t.site, t.exit, t.place, l.auto_ack, r.cancelled,
           s.delay, s.crawl_delay, s.pace, s.site_delay, s.probing, s.probe, s.last_token, s.begun_at, s.begun_before,
           k.slot_at, k.probe, k.last_token, k.begun_at, k.begun_before, k.penalty, k.blocked_until
    FROM (SELECT * FROM task WHERE task.id = _task AND task.token = _token OFFSET 0) AS t
    CROSS JOIN LATERAL (
        SELECT run.state = 'cancelled' AS cancelled FROM run WHERE run.id = t.run AND run.run_id = _run_id OFFSET 0) AS r
    CROSS JOIN LATERAL (SELECT line.auto_ack FROM line WHERE line.id = t.line OFFSET 0) AS l
    CROSS JOIN LATERAL (SELECT * FROM site WHERE site.id = t.site OFFSET 0) AS s
    CROSS JOIN LATERAL slot_of(t.site, t.exit) AS k
$$;
