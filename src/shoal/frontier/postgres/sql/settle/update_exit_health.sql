-- What settlements that stood tell about exits, in their order. An exit that works and was never heard of stays so.
-- A failure while an exit is left alone was under way before, and says nothing new.
-- How long a failing exit is left alone: as `shoal.core.politeness.quarantine`.
CREATE FUNCTION update_exit_health(_now bigint, _stood bigint[], _reports exit_reports) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    _report record;
BEGIN
    INSERT INTO exit_book (name)
    SELECT DISTINCT u.name COLLATE "C"
    FROM unnest(_reports.settlement, _reports.exit, _reports.works) AS u (nth, name, ok)
    WHERE NOT u.ok AND u.nth = ANY (_stood)
    ORDER BY 1
    ON CONFLICT DO NOTHING;
    PERFORM 1 FROM exit_book WHERE name = ANY (_reports.exit) ORDER BY name FOR NO KEY UPDATE;
    FOR _report IN
        SELECT u.name, u.ok
        FROM unnest(_reports.settlement, _reports.exit, _reports.works) WITH ORDINALITY AS u (settlement, name, ok, nth)
        WHERE u.settlement = ANY (_stood)
        ORDER BY u.nth
    LOOP
        IF _report.ok THEN
            UPDATE exit_book SET failures = 0, quarantined_until = 0, probe = 0
            WHERE name = _report.name AND (failures > 0 OR quarantined_until > 0);
        ELSE
            UPDATE exit_book
            SET failures = failures + 1, probe = 0,
                quarantined_until = CASE WHEN failures + 1 < {{QUARANTINE_AFTER}} THEN quarantined_until ELSE greatest(
                    quarantined_until, _now + least(
                        {{QUARANTINE_FIRST}}::bigint << least(failures + 1 - {{QUARANTINE_AFTER}}, 20), {{QUARANTINE_MOST}})) END
            WHERE name = _report.name AND quarantined_until <= _now;
        END IF;
    END LOOP;
END
$$;
