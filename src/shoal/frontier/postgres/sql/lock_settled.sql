-- Lock the sites of these leases, and those that new links go to, in the order of their ids.
CREATE FUNCTION lock_settled(_task bigint[], _token bigint[], _site text[], _fresh boolean[]) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    _ids int[];
BEGIN
    _ids := ARRAY(
        SELECT t.site FROM unnest(_task, _token) AS u (task, token)
        CROSS JOIN LATERAL (
            SELECT t.site FROM task AS t WHERE t.id = u.task AND t.token = u.token OFFSET 0) AS t
        UNION
        SELECT s.id FROM (SELECT DISTINCT u.site FROM unnest(_site, _fresh) AS u (site, fresh) WHERE u.fresh) AS u
        CROSS JOIN LATERAL (SELECT s.id FROM site AS s WHERE s.key = u.site OFFSET 0) AS s
    );
    PERFORM 1 FROM site WHERE id = ANY (_ids) ORDER BY id FOR NO KEY UPDATE;
END
$$;
