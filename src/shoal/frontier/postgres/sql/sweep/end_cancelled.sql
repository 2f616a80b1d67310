-- End what waits of cancelled runs; bounded. In a shared queue the ready ones are ended by the claim that meets them, except
-- those of jobs, which can be found.
CREATE FUNCTION end_cancelled(_now bigint, _most int) RETURNS int
LANGUAGE plpgsql SET enable_hashjoin = on
AS $$
DECLARE
    _runs int[];
    _task bigint[];
BEGIN
    _runs := ARRAY(
        SELECT r.id
        FROM run AS r
        LEFT JOIN (
            SELECT d.run, sum(d.waiting) AS waiting FROM tally_change AS d
            WHERE d.xid >= (SELECT g.upto FROM ledger AS g)
            GROUP BY d.run
        ) AS c ON c.run = r.id
        WHERE r.state = 'cancelled'
          AND coalesce(c.waiting, 0) + (SELECT coalesce(sum(t.waiting), 0) FROM tally AS t WHERE t.run = r.id) > 0);
    IF _runs = '{}' THEN
        RETURN 0;
    END IF;
    _task := ARRAY(
        SELECT w.id
        FROM (
            SELECT t.id, t.site FROM task AS t WHERE t.state IN (1, 3) AND t.run = ANY (_runs)
            UNION ALL
            SELECT t.id, t.site
            FROM run AS r
            JOIN line AS l ON l.queue = r.queue
            JOIN task AS t ON t.line = l.id AND t.state = 0
            WHERE r.id = ANY (_runs) AND r.queue = r.run_id
            UNION ALL
            SELECT t.id, t.site FROM task AS t WHERE t.part IS NOT NULL AND t.run = ANY (_runs) AND t.state = 0
            LIMIT _most
        ) AS w
        CROSS JOIN LATERAL (SELECT s.id FROM site AS s WHERE s.id = w.site FOR NO KEY UPDATE SKIP LOCKED) AS s
        LIMIT _most);
    RETURN end_waiting(_now, _task, false);
END
$$;
