-- entry: look
-- How many tasks have not ended, by scraper, as far as anybody has committed.
CREATE FUNCTION read_scrapers() RETURNS TABLE (scraper text, remaining bigint)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT l.scraper, sum(c.remaining)::bigint
    FROM (
        SELECT l.id AS line, l.waiting + l.live AS remaining
        FROM line AS l
        WHERE l.waiting + l.live <> 0
        UNION ALL
        SELECT d.line, d.waiting + d.live
        FROM tally_change AS d
        WHERE d.xid >= (SELECT g.upto FROM ledger AS g) AND d.line <> 0
    ) AS c
    JOIN line AS l ON l.id = c.line
    GROUP BY l.scraper
    HAVING sum(c.remaining) > 0;
END
$$;
