-- entry: verb
-- The counters that an arriving run brings, by name.
CREATE FUNCTION count_run(_run_id text, _move text, _counts text) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    _run run;
BEGIN
    LOCK TABLE tally_change IN ROW EXCLUSIVE MODE;
    _run := arriving_run(_run_id, _move);
    INSERT INTO tally_change (run, line, done, dead, expired, dropped, cancelled, items, requests, received, retries,
                              snoozes, crashes, duplicates, refused, late, saved_requests, saved_bytes)
    SELECT _run.id, 0, c.done, c.dead, c.expired, c.dropped, c.cancelled, c.items, c.requests, c.received, c.retries,
           c.snoozes, c.crashes, c.duplicates, c.refused, c.late,
           coalesce(c.saved_requests, 0), coalesce(c.saved_bytes, 0)
    FROM jsonb_to_record(_counts::jsonb)
         AS c (done bigint, dead bigint, expired bigint, dropped bigint, cancelled bigint, items bigint, requests bigint,
               received bigint, retries bigint, snoozes bigint, crashes bigint, duplicates bigint, refused bigint, late bigint,
               saved_requests bigint, saved_bytes bigint);
END
$$;
