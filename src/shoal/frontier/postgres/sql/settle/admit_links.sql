-- The links of settlements that stood take their places. What stood when their keys were remembered must still stand.
CREATE FUNCTION admit_links(
    _now bigint, _stood bigint[], _link_of int[], _run int[], _site int[], _links new_tasks, _fresh boolean[],
    _tighten boolean
) RETURNS void
LANGUAGE plpgsql SET enable_hashjoin = on
AS $$
BEGIN
    IF EXISTS (
        SELECT 1 FROM unnest(_link_of, _run) AS u (settlement, run) LEFT JOIN unnest(_stood) AS s (nth) ON s.nth = u.settlement
        WHERE u.run IS NOT NULL AND s.nth IS NULL
    ) THEN
        RAISE EXCEPTION 'a lease was lost on the way' USING ERRCODE = '40001';
    END IF;
    PERFORM insert_tasks(_now, _run, _site, _links, _fresh, _tighten);
    INSERT INTO tally_change (run, line, duplicates)
    SELECT u.run, 0, count(*) FROM unnest(_run, _fresh) AS u (run, fresh)
    WHERE u.run IS NOT NULL AND NOT u.fresh
    GROUP BY u.run;
    -- A lane that acknowledges itself may bring links to a run that has ended.
    PERFORM reopen_run(r.id, 1)
    FROM (SELECT DISTINCT u.run FROM unnest(_run, _fresh) AS u (run, fresh) WHERE u.fresh ORDER BY u.run) AS u
    CROSS JOIN LATERAL (SELECT run.id FROM run WHERE run.id = u.run AND run.state = 'finished' OFFSET 0) AS r;
END
$$;
