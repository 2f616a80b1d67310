-- Lock the sites of these leases, and those that new links go to, in the order of their ids. Answers whether the rules of
-- one of them may not be those of the runs that the links belong to, and whether each lease is of a site of its own.
CREATE FUNCTION lock_settled_sites(
    _task bigint[], _token bigint[], _run int[], _site int[], OUT tighten boolean, OUT singly boolean
)
LANGUAGE plpgsql
AS $$
DECLARE
    _ids int[];
BEGIN
    _ids := ARRAY(
        SELECT DISTINCT t.site FROM unnest(_task, _token) AS u (task, token)
        CROSS JOIN LATERAL (SELECT t.site FROM task AS t WHERE t.id = u.task AND t.token = u.token OFFSET 0) AS t);
    singly := cardinality(_ids) = cardinality(_task);
    IF _site IS NULL THEN
        PERFORM 1 FROM site WHERE id = ANY (_ids) ORDER BY id FOR NO KEY UPDATE;
        tighten := false;
        RETURN;
    END IF;
    _ids := _ids || array_remove(_site, NULL);
    SELECT (SELECT min(u.run) <> max(u.run) FROM unnest(_run) AS u (run))
           OR bool_or((s.delay, s.site_delay, s.concurrency, s.hard_timeout, s.lease, s.limit_exits, s.limit_window)
                      <> (r.delay, r.site_delay, r.concurrency, r.hard_timeout, r.lease, r.limit_exits, r.limit_window))
    INTO tighten
    FROM (SELECT * FROM site WHERE site.id = ANY (_ids) ORDER BY site.id FOR NO KEY UPDATE) AS s
    LEFT JOIN run AS r ON r.id = (SELECT min(u.run) FROM unnest(_run) AS u (run));
END
$$;
