-- What settlements that stood tell about exits, in their order. An exit that works and was never heard of stays so.
-- A failure while an exit is left alone was under way before, and says nothing new.
-- How long a failing exit is left alone is `shoal.frontier.exits.quarantine`.
CREATE FUNCTION learn(_now bigint, _stood bigint[], _told_of int[], _told_exit text[], _told_ok boolean[]) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    _told record;
BEGIN
    INSERT INTO exit_book (name)
    SELECT DISTINCT u.name COLLATE "C" FROM unnest(_told_of, _told_exit, _told_ok) AS u (nth, name, ok)
    WHERE NOT u.ok AND u.nth = ANY (_stood)
    ORDER BY 1
    ON CONFLICT DO NOTHING;
    PERFORM 1 FROM exit_book WHERE name = ANY (_told_exit) ORDER BY name FOR NO KEY UPDATE;
    FOR _told IN
        SELECT u.name, u.ok FROM unnest(_told_of, _told_exit, _told_ok) WITH ORDINALITY AS u (settlement, name, ok, nth)
        WHERE u.settlement = ANY (_stood)
        ORDER BY u.nth
    LOOP
        IF _told.ok THEN
            UPDATE exit_book SET failures = 0, quarantined_until = 0, probe = 0
            WHERE name = _told.name AND (failures > 0 OR quarantined_until > 0);
        ELSE
            UPDATE exit_book
            SET failures = failures + 1, probe = 0,
                quarantined_until = CASE WHEN failures + 1 < 3 THEN quarantined_until ELSE greatest(
                    quarantined_until, _now + least(30000::bigint << least(failures - 2, 20), 3600000)) END
            WHERE name = _told.name AND quarantined_until <= _now;
        END IF;
    END LOOP;
END
$$;
