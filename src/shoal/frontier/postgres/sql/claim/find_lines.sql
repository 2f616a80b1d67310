-- The lines that a worker may draw from, with what waits and what is leased in them, as far as anybody has committed.
CREATE FUNCTION find_lines(_scrapers text[], _lanes text[], _queues text[])
RETURNS TABLE (line int, waiting bigint, live bigint, changes bigint)
LANGUAGE sql STABLE  -- so that it becomes a part of the statements that ask
AS $$
    SELECT c.line, sum(c.waiting)::bigint, sum(c.live)::bigint, sum(c.changes)::bigint
    FROM (
        SELECT l.id AS line, l.waiting, l.live, 0 AS changes
        FROM line AS l
        WHERE l.waiting + l.live <> 0
        UNION ALL
        SELECT d.line, sum(d.waiting), sum(d.live), count(*)
        FROM tally_change AS d
        WHERE d.xid >= (SELECT g.upto FROM ledger AS g) AND d.line <> 0
        GROUP BY d.line
    ) AS c
    CROSS JOIN LATERAL (
        SELECT 1 FROM line AS l
        WHERE l.id = c.line AND l.scraper = ANY (_scrapers) AND l.lane = ANY (_lanes)
          AND (_queues IS NULL OR l.queue = ANY (_queues))
        OFFSET 0) AS l
    GROUP BY c.line
    HAVING sum(c.waiting) + sum(c.live) <> 0
$$;
