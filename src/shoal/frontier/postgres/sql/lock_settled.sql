-- Lock the sites of these leases, and those that new links go to, in the order of their ids. Answers whether the rules of
-- one of them may not be those of the runs that the links belong to.
CREATE FUNCTION lock_settled(_task bigint[], _token bigint[], _run int[], _site text[], _fresh boolean[]) RETURNS boolean
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
        SELECT s.id FROM (SELECT DISTINCT u.site FROM unnest(_site, _fresh) AS u (site, fresh) WHERE u.fresh) AS u
        CROSS JOIN LATERAL (SELECT s.id FROM site AS s WHERE s.key = u.site OFFSET 0) AS s
    );
    IF _fresh IS NULL THEN
        PERFORM 1 FROM site WHERE id = ANY (_ids) ORDER BY id FOR NO KEY UPDATE;
        RETURN false;
    END IF;
    SELECT (SELECT min(u.run) <> max(u.run) FROM unnest(_run) AS u (run))
           OR bool_or((s.delay, s.site_delay, s.concurrency, s.hard_timeout, s.lease)
                      <> (r.delay, r.site_delay, r.concurrency, r.hard_timeout, r.lease))
    INTO _tighten
    FROM (SELECT * FROM site WHERE site.id = ANY (_ids) ORDER BY site.id FOR NO KEY UPDATE) AS s
    LEFT JOIN run AS r ON r.id = (SELECT min(u.run) FROM unnest(_run) AS u (run));
    RETURN _tighten;
END
$$;
