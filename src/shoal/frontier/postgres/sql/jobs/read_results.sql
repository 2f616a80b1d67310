-- entry: look
-- The items of jobs, in the order they were settled; one row with nothing for a job without any, and none for one
-- with too many bytes. Unlike `read_items` this shows all that is committed: nobody goes on from here with a cursor.
CREATE FUNCTION read_results(_now bigint, _id text[], _bytes bigint)
RETURNS TABLE (job_id text, url text, group_name text, body bytea)
LANGUAGE plpgsql
AS $$
BEGIN
    _now := moment(_now);
    RETURN QUERY
    SELECT r.run_id, i.url, i.group_name, i.body
    FROM unnest(_id) WITH ORDINALITY AS u (run_id, nth)
    CROSS JOIN LATERAL (
        SELECT run.id, run.run_id FROM run
        WHERE run.run_id = u.run_id AND run.is_job AND (run.results_until IS NULL OR run.results_until > _now)
          AND NOT EXISTS (SELECT 1 FROM job WHERE job.run = run.id AND job.gone_at IS NOT NULL)
          AND (SELECT coalesce(sum(octet_length(item.body)), 0) FROM item WHERE item.run = run.id) <= _bytes
        OFFSET 0) AS r
    LEFT JOIN LATERAL (SELECT * FROM item WHERE item.run = r.id OFFSET 0) AS i ON true
    ORDER BY u.nth, i.id;
END
$$;
