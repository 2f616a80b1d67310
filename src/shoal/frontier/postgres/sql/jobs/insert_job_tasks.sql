-- The tasks of jobs that were just made take their places. _number: of each job; null = it was not made.
CREATE FUNCTION insert_job_tasks(
    _now bigint, _number int[], _job_of int[], _tasks new_tasks
) RETURNS void
LANGUAGE plpgsql SET enable_hashjoin = on
AS $$
DECLARE
    _runs int[];
    _fresh boolean[];
    _sites int[];
    _tighten boolean;
BEGIN
    _runs := ARRAY(SELECT _number[u.job] FROM unnest(_job_of) WITH ORDINALITY AS u (job, nth) ORDER BY u.nth);
    _fresh := mark_seen(_runs, _tasks.key);
    _sites := ensure_lines_and_sites(_runs, _tasks.site, _tasks.lane, _fresh);
    SELECT coalesce(bool_or((s.delay, s.site_delay, s.concurrency, s.hard_timeout, s.lease, s.limit_exits, s.limit_window)
                            <> (r.delay, r.site_delay, r.concurrency, r.hard_timeout, r.lease, r.limit_exits,
                                r.limit_window)), false)
    INTO _tighten
    FROM (SELECT * FROM site WHERE site.id = ANY (_sites) ORDER BY site.id FOR NO KEY UPDATE) AS s
    CROSS JOIN (
        SELECT DISTINCT r.delay, r.site_delay, r.concurrency, r.hard_timeout, r.lease, r.limit_exits, r.limit_window
        FROM unnest(_number) AS u (id)
        CROSS JOIN LATERAL (SELECT * FROM run WHERE run.id = u.id OFFSET 0) AS r
    ) AS r;
    PERFORM insert_tasks(_now, _runs, _sites, _tasks, _fresh, _tighten, true);
    INSERT INTO tally_change (run, line, duplicates)
    SELECT u.run, 0, count(*) FROM unnest(_runs, _fresh) AS u (run, fresh)
    WHERE u.run IS NOT NULL AND NOT u.fresh
    GROUP BY u.run;
END
$$;
