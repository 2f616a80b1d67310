-- entry: verb
-- `release_site` of the book of exits: undo rate limits and bans of one site, of all its slots, and the waits of its tasks
-- that were set back. Its pace stays. Answers whether there is such a site.
CREATE FUNCTION release_site(_now bigint, _key text) RETURNS boolean
LANGUAGE plpgsql
AS $$
DECLARE
    _site int;
BEGIN
    _now := moment(_now);
    SELECT s.id INTO _site FROM site AS s WHERE s.key = _key FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    UPDATE slot SET blocked_until = 0, probing = false, probe = 0
    WHERE site = _site AND cause IS NOT NULL AND (blocked_until > _now OR probing);
    UPDATE site SET blocked_until = 0 WHERE id = _site AND blocked_until > _now;
    UPDATE task SET not_before = _now
    WHERE site = _site AND state IN (1, 3) AND state = 1 AND not_before > _now AND strpos(extra, '"set_back_since":') > 0;
    UPDATE visit SET due_at = _now WHERE site = _site AND due_at > _now;
    PERFORM lower_floors(_now);
    RETURN true;
END
$$;
