-- Slots that have been at rest since _before are forgotten: those of the next stretch, which begins behind the slot of
-- _site and _exit (null = anywhere). Answers where it ended; behind the last slot comes the first again.
CREATE FUNCTION forget_slots(_before bigint, _most int, INOUT _site int, INOUT _exit text)
LANGUAGE plpgsql
AS $$
DECLARE
    _behind_all CONSTANT int := 2147483647;
    _first int;
    _first_exit text;
    _sites int[];
BEGIN
    IF _site IS NULL THEN
        SELECT coalesce(floor(random() * max(s.id))::int, 0), '' INTO _site, _exit FROM site AS s;
    END IF;
    _first := _site;
    _first_exit := _exit;
    SELECT k.site, k.exit INTO _site, _exit
    FROM slot AS k WHERE (k.site, k.exit) > (_first, _first_exit) ORDER BY k.site, k.exit OFFSET _most - 1 LIMIT 1;
    IF NOT FOUND THEN
        _site := _behind_all;
        _exit := '';
    END IF;
    _sites := ARRAY(
        SELECT s.id FROM site AS s
        WHERE s.id = ANY (ARRAY(
            SELECT k.site
            FROM slot AS k
            CROSS JOIN LATERAL (
                SELECT pace_of(s.delay, s.crawl_delay, s.pace) AS pace FROM site AS s WHERE s.id = k.site OFFSET 0) AS s
            WHERE (k.site, k.exit) > (_first, _first_exit)
              AND (k.site, k.exit) <= (_site, _exit)
              AND is_at_rest(k, s.pace, _before)))
        ORDER BY s.id
        FOR NO KEY UPDATE SKIP LOCKED);
    IF _sites <> '{}' THEN
        -- Again, now that their sites are locked and stay as they are.
        DELETE FROM slot USING site AS s
        WHERE s.id = ANY (_sites) AND slot.site = s.id
          AND (slot.site, slot.exit) > (_first, _first_exit)
          AND (slot.site, slot.exit) <= (_site, _exit)
          AND is_at_rest(slot, pace_of(s.delay, s.crawl_delay, s.pace), _before);
    END IF;
    IF _site = _behind_all THEN
        _site := 0;
    END IF;
END
$$;
