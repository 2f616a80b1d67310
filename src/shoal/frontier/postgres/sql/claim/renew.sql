-- entry: verb
-- The verb `renew`. Answers the tokens that still live. Whoever ends a lease holds its site: so that none is called alive
-- which a sweep is just bringing back.
CREATE FUNCTION renew(
    _now bigint, _worker worker_fields, _task bigint[], _token bigint[]
) RETURNS bigint[]
LANGUAGE plpgsql
AS $$
DECLARE
    _live bigint[];
BEGIN
    _now := moment(_now);
    PERFORM heartbeat(_now, _worker);
    PERFORM 1 FROM site
    WHERE id = ANY (ARRAY(
        SELECT t.site FROM unnest(_task, _token) AS u (task, token)
        CROSS JOIN LATERAL (SELECT t.site FROM task AS t WHERE t.id = u.task AND t.token = u.token OFFSET 0) AS t))
    ORDER BY id FOR NO KEY UPDATE;
    WITH live AS MATERIALIZED (
        SELECT t.id
        FROM unnest(_task, _token) AS u (task, token)
        CROSS JOIN LATERAL (
            SELECT t.id FROM task AS t CROSS JOIN run AS r
            WHERE t.id = u.task AND t.token = u.token AND r.id = t.run AND r.state <> 'cancelled'
            OFFSET 0) AS t
    ), renewed AS (
        UPDATE task SET lease_until = _now + (SELECT s.lease FROM site AS s WHERE s.id = task.site)
        FROM live
        WHERE task.id = live.id
        RETURNING task.token
    )
    SELECT array_agg(r.token) INTO _live FROM renewed AS r;
    RETURN coalesce(_live, '{}');
END
$$;
