-- entry: verb
-- Dead letters of an arriving run.
CREATE FUNCTION unpack_letters(
    _run_id text, _move text, _id bigint[], _url text[], _site text[], _lane text[], _handler text[], _priority int[],
    _depth int[], _attempts int[], _crashes int[], _extra text[], _reason text[], _died_at bigint[]
) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    _run run;
    _sites int[];
BEGIN
    LOCK TABLE tally_change IN ROW EXCLUSIVE MODE;
    _run := arriving_run(_run_id, _move);
    _sites := ensure_lines_and_sites(array_fill(_run.id, ARRAY[cardinality(_id)]), _site, _lane,
                          array_fill(true, ARRAY[cardinality(_id)]));
    INSERT INTO dead (task, died_at, run, line, site, priority, depth, attempts, crashes, url, handler, extra, reason)
    SELECT u.id, u.died_at, _run.id, l.id, u.site_id, u.priority, u.depth, u.attempts, u.crashes, u.url, u.handler, u.extra,
           u.reason
    FROM unnest(_id, _url, _sites, _lane, _handler, _priority, _depth, _attempts, _crashes, _extra, _reason, _died_at)
         AS u (id, url, site_id, lane, handler, priority, depth, attempts, crashes, extra, reason, died_at)
    CROSS JOIN LATERAL (SELECT * FROM lane_and_pool(u.lane, _run.pool)) AS b
    CROSS JOIN LATERAL (
        SELECT line.id FROM line
        WHERE line.queue = _run.queue AND line.scraper = _run.scraper AND line.lane = b.lane AND line.pool = b.pool
        OFFSET 0) AS l;
END
$$;
