-- entry: verb
-- `release` of the book of exits: undo bans and rate limits of an exit at one site, or (no site) everywhere, with its quarantine.
CREATE FUNCTION release_exit(_now bigint, _name text, _key text) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    _sites int[];
BEGIN
    _now := moment(_now);
    _sites := ARRAY(
        SELECT k.site FROM slot AS k
        WHERE k.exit = _name AND k.cause IS NOT NULL AND (k.blocked_until > _now OR k.probing)
          AND (_key IS NULL OR k.site = (SELECT s.id FROM site AS s WHERE s.key = _key)));
    PERFORM 1 FROM site WHERE id = ANY (_sites) ORDER BY id FOR NO KEY UPDATE;
    UPDATE slot SET blocked_until = 0, probing = false, probe = 0 WHERE site = ANY (_sites) AND exit = _name;
    UPDATE site SET blocked_until = 0 WHERE id = ANY (_sites) AND blocked_until > _now;
    UPDATE visit SET due_at = _now WHERE site = ANY (_sites) AND due_at > _now;
    IF _key IS NULL THEN
        UPDATE exit_book SET failures = 0, quarantined_until = 0, banned_until = 0, probe = 0 WHERE name = _name;
    END IF;
    PERFORM lower_floors(_now);
END
$$;
