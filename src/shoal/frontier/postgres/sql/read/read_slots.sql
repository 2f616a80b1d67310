-- entry: look
-- The slots of a site, by exit.
CREATE FUNCTION read_slots(_now bigint, _key text)
RETURNS TABLE (
    exit text, next_at bigint, blocked_until bigint, live int, penalty bigint, probing boolean, cause text
)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
BEGIN
    _now := moment(_now);
    RETURN QUERY
    SELECT k.exit::text, slot_free_at(k.begun_at, pace_of(s.delay, s.crawl_delay, s.pace), k.blocked_until), k.blocked_until,
           k.live, remembered_penalty(k.penalty, k.limited_until, _now),
           k.probing AND k.blocked_until <= _now, nullif(k.cause, '')
    FROM site AS s
    JOIN slot AS k ON k.site = s.id
    WHERE s.key = _key
    ORDER BY k.exit;
END
$$;
