-- The slot of a site and an exit, and where in the table it stands; nothing, if there is none yet.
CREATE FUNCTION slot_of(_site int, _exit text)
RETURNS TABLE (
    slot_at tid, live int, begun_at bigint, begun_before bigint, blocked_until bigint, last_at bigint, last_token bigint,
    penalty int, limited_until bigint, probing boolean, probe bigint
)
LANGUAGE sql STABLE ROWS 1  -- a part of the statements that use it
AS $$
    SELECT slot.ctid, slot.live, slot.begun_at, slot.begun_before, slot.blocked_until, slot.last_at, slot.last_token,
           slot.penalty, slot.limited_until, slot.probing, slot.probe
    FROM slot
    WHERE slot.site BETWEEN _site AND _site AND slot.exit = _exit
    ORDER BY slot.site DESC, slot.exit DESC
    LIMIT 1
$$;
