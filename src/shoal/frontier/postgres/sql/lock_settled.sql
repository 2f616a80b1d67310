-- Lock the sites of these leases, and those that new links go to, in the order of their ids. Answers whether the rules of
-- one of them may not be those of the runs that the links belong to.
CREATE FUNCTION lock_settled(_task bigint[], _token bigint[], _run int[], _site int[]) RETURNS boolean
LANGUAGE plpgsql
AS $$
DECLARE
    _ids int[];
    _tighten boolean;
BEGIN
    _ids := ARRAY(
        SELECT t.site FROM unnest(_task, _token) AS u (task, token)
        CROSS JOIN LATERAL (SELECT t.site FROM task AS t WHERE t.id = u.task AND t.token = u.token OFFSET 0) AS t
        UNION
        SELECT u.site FROM unnest(_site) AS u (site) WHERE u.site IS NOT NULL
    );
    IF _site IS NULL THEN
        PERFORM 1 FROM site WHERE id = ANY (_ids) ORDER BY id FOR NO KEY UPDATE;
        RETURN false;
    END IF;
    SELECT (SELECT min(u.run) <> max(u.run) FROM unnest(_run) AS u (run))
           OR bool_or((s.delay, s.site_delay, s.concurrency, s.hard_timeout, s.lease, s.limit_exits, s.limit_window)
                      <> (r.delay, r.site_delay, r.concurrency, r.hard_timeout, r.lease, r.limit_exits, r.limit_window))
    INTO _tighten
    FROM (SELECT * FROM site WHERE site.id = ANY (_ids) ORDER BY site.id FOR NO KEY UPDATE) AS s
    LEFT JOIN run AS r ON r.id = (SELECT min(u.run) FROM unnest(_run) AS u (run));
    RETURN _tighten;
END
$$;
