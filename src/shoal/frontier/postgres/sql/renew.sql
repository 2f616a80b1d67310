-- The verb `renew`. Answers the tokens that still live. A task that another call is just changing is not waited for: it is
-- being settled, swept or renewed.
CREATE FUNCTION renew(
    _now bigint, _worker_id text, _machine text, _pid bigint, _pid_started bigint, _notebook text, _task bigint[],
    _token bigint[]
) RETURNS bigint[]
LANGUAGE plpgsql
AS $$
DECLARE
    _live bigint[];
    _ids bigint[];
BEGIN
    _now := moment(_now);
    PERFORM greet(_now, _worker_id, _machine, _pid, _pid_started, _notebook);
    SELECT array_agg(t.token), array_agg(t.id) INTO _live, _ids
    FROM unnest(_task, _token) AS u (task, token)
    CROSS JOIN LATERAL (
        SELECT t.id, t.token FROM task AS t CROSS JOIN run AS r
        WHERE t.id = u.task AND t.token = u.token AND r.id = t.run AND r.state <> 'cancelled'
        OFFSET 0) AS t;
    _ids := ARRAY(
        SELECT t.id FROM task AS t WHERE t.id = ANY (_ids) AND t.token = ANY (_token)
        FOR NO KEY UPDATE SKIP LOCKED);
    UPDATE task SET lease_until = _now + (SELECT s.lease FROM site AS s WHERE s.id = task.site)
    WHERE id = ANY (_ids);
    RETURN coalesce(_live, '{}');
END
$$;
