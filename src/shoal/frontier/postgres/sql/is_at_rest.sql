-- Whether a slot says nothing since that moment, given the pace of its site. 600000: as shoal.politeness.QUIET.
CREATE FUNCTION is_at_rest(_slot slot, _pace bigint, _before bigint) RETURNS boolean
LANGUAGE sql IMMUTABLE
AS $$
    SELECT _slot.live = 0 AND _slot.last_at < _before AND _slot.blocked_until < _before
           AND _slot.limited_until + _slot.penalty * 600000::bigint < _before AND _slot.begun_at + _pace < _before
$$;
