-- entry: verb
-- The clocks that an arriving run brings; they only ever go forward. New sites begin with the rules of the run.
CREATE FUNCTION unpack_sites(
    _run_id text, _move text, _site text[], _crawl_delay bigint[], _begun_at bigint[], _slot_site text[], _exit text[],
    _slot_begun bigint[], _blocked_until bigint[], _penalty int[], _last_at bigint[]
) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    _run run;
BEGIN
    LOCK TABLE tally_change IN ROW EXCLUSIVE MODE;
    _run := arriving_run(_run_id, _move);
    INSERT INTO site (key, delay, site_delay, concurrency, hard_timeout, lease, limit_exits, limit_window)
    SELECT u.site, _run.delay, _run.site_delay, _run.concurrency, _run.hard_timeout, _run.lease, _run.limit_exits,
           _run.limit_window
    FROM unnest(_site) AS u (site)
    ORDER BY u.site COLLATE "C"
    ON CONFLICT DO NOTHING;
    PERFORM 1 FROM site WHERE key = ANY (_site) ORDER BY id FOR NO KEY UPDATE;
    UPDATE site
    SET begun_at = greatest(site.begun_at, u.begun_at), begun_before = greatest(site.begun_before, u.begun_at),
        crawl_delay = greatest(site.crawl_delay, u.crawl_delay)
    FROM unnest(_site, _crawl_delay, _begun_at) AS u (site, crawl_delay, begun_at)
    WHERE site.key = u.site;
    WITH brought AS MATERIALIZED (
        SELECT s.id, u.*, k.ctid AS slot_at
        FROM unnest(_slot_site, _exit, _slot_begun, _blocked_until, _penalty, _last_at)
             AS u (site, exit, begun_at, blocked_until, penalty, last_at)
        CROSS JOIN LATERAL (SELECT site.id FROM site WHERE site.key = u.site OFFSET 0) AS s
        LEFT JOIN LATERAL (SELECT slot.ctid FROM slot WHERE slot.site = s.id AND slot.exit = u.exit OFFSET 0) AS k ON true
    ), joined AS (
        UPDATE slot
        SET begun_at = greatest(slot.begun_at, b.begun_at), begun_before = greatest(slot.begun_before, b.begun_at),
            blocked_until = greatest(slot.blocked_until, b.blocked_until), penalty = greatest(slot.penalty, b.penalty),
            last_at = greatest(slot.last_at, b.last_at),
            limited_until = CASE WHEN b.penalty > 0 THEN greatest(slot.limited_until, b.blocked_until)
                                 ELSE slot.limited_until END,
            probing = slot.probing OR b.penalty > 0,
            cause = CASE WHEN b.penalty > 0 THEN coalesce(slot.cause, '') ELSE slot.cause END
        FROM brought AS b
        WHERE slot.ctid = b.slot_at
    )
    INSERT INTO slot (site, exit, begun_at, begun_before, blocked_until, penalty, last_at, limited_until, probing, cause)
    SELECT b.id, b.exit, b.begun_at, b.begun_at, b.blocked_until, b.penalty, b.last_at,
           CASE WHEN b.penalty > 0 THEN b.blocked_until ELSE 0 END, b.penalty > 0, CASE WHEN b.penalty > 0 THEN '' END
    FROM brought AS b
    WHERE b.slot_at IS NULL;
END
$$;
