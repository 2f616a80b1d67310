-- Count the settlements that came too late.
CREATE FUNCTION count_late(_run_id text[], _stood bigint[]) RETURNS void
LANGUAGE plpgsql SET enable_hashjoin = on
AS $$
BEGIN
    INSERT INTO tally_change (run, line, late)
    SELECT r.id, 0, l.late
    FROM (
        SELECT u.run_id, count(*) AS late
        FROM unnest(_run_id) WITH ORDINALITY AS u (run_id, nth) LEFT JOIN unnest(_stood) AS s (nth) ON s.nth = u.nth
        WHERE s.nth IS NULL
        GROUP BY u.run_id
    ) AS l
    CROSS JOIN LATERAL (SELECT run.id FROM run WHERE run.run_id = l.run_id OFFSET 0) AS r;
END
$$;
