-- entry: verb
-- `ban` of the book of exits: at one site, whose slot is blocked, or (no site) everywhere. A site that nobody has visited yet
-- takes the rules of the first run that comes; until then these.
CREATE FUNCTION ban_exit(_now bigint, _name text, _wait bigint, _key text, _rules site_rules) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    _site int;
    _until bigint;
BEGIN
    _now := moment(_now);
    _until := _now + _wait;
    IF _key IS NOT NULL THEN
        INSERT INTO site (key, delay, site_delay, concurrency, hard_timeout, lease, limit_exits, limit_window)
        SELECT _key, _rules.delay, _rules.site_delay, _rules.concurrency, _rules.hard_timeout, _rules.lease, _rules.limit_exits,
               _rules.limit_window
        WHERE NOT EXISTS (SELECT 1 FROM site AS s WHERE s.key = _key)
        ON CONFLICT DO NOTHING;
        SELECT id INTO _site FROM site WHERE key = _key FOR NO KEY UPDATE;
        UPDATE slot SET blocked_until = greatest(blocked_until, _until), cause = coalesce(cause, '')
        WHERE site = _site AND exit = _name;
        IF NOT FOUND THEN
            INSERT INTO slot (site, exit, blocked_until, cause) VALUES (_site, _name, _until, '');
        END IF;
        _until := 0;
    END IF;
    INSERT INTO exit_book (name, banned_until) VALUES (_name, _until)
    ON CONFLICT (name) DO UPDATE SET banned_until = greatest(exit_book.banned_until, excluded.banned_until);
END
$$;
