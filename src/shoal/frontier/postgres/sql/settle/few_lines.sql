-- All lines, if there are few: then the visits of a site are looked for line by line, and each is found at once. Else null.
CREATE FUNCTION few_lines() RETURNS int[]
LANGUAGE plpgsql
AS $$
BEGIN
    RETURN (SELECT CASE WHEN count(*) <= 4 THEN array_agg(l.id) END
            FROM (SELECT line.id FROM line ORDER BY line.id LIMIT 5) AS l);
END
$$;
