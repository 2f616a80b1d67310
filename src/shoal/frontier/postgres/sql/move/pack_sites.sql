-- entry: verb
-- Sites whose clocks may still matter, with their slots.
CREATE FUNCTION pack_sites(_since bigint, _after int, _most int)
RETURNS TABLE (id int, site text, crawl_delay bigint, begun_at bigint, slots text)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT s.id, s.key::text, s.crawl_delay, s.begun_at, (
        SELECT coalesce(json_agg(json_build_array(k.exit, k.begun_at, k.blocked_until, k.penalty, k.last_at)), '[]')::text
        FROM slot AS k WHERE k.site = s.id)
    FROM site AS s
    WHERE s.id > _after
      AND (s.crawl_delay > 0 OR s.begun_at > _since OR EXISTS (
          SELECT 1 FROM slot AS k
          WHERE k.site = s.id AND (k.penalty > 0 OR k.begun_at > _since OR k.blocked_until > _since)))
    ORDER BY s.id
    LIMIT _most;
END
$$;
