-- The numbers of the sites that fresh tasks go to, in their order; null where there is none yet, or a task is not fresh.
CREATE FUNCTION sites_of(_site text[], _fresh boolean[]) RETURNS int[]
LANGUAGE plpgsql
AS $$
BEGIN
    RETURN ARRAY(
        SELECT s.id
        FROM unnest(_site, _fresh) WITH ORDINALITY AS u (site, fresh, n)
        LEFT JOIN LATERAL (SELECT site.id FROM site WHERE u.fresh AND site.key = u.site OFFSET 0) AS s ON true
        ORDER BY u.n);
END
$$;
