-- Whether a slot says nothing since that moment, given the pace of its site.
CREATE FUNCTION is_at_rest(_slot slot, _pace bigint, _before bigint) RETURNS boolean
LANGUAGE sql IMMUTABLE
AS $$
    SELECT _slot.live = 0 AND _slot.last_at < _before AND _slot.blocked_until < _before
           AND _slot.limited_until + _slot.penalty * {{QUIET}}::bigint < _before AND _slot.begun_at + _pace < _before
$$;
