-- Which of the exits of a line can be used, and for how many leases each (null = any number) and together. If none: when to
-- look again (open_at). _look_at: no visit may be put off for longer, because an exit that is left alone may be of use then,
-- or sooner if somebody releases it.
CREATE FUNCTION usable_exits(
    _now bigint, _exits text[], _names text[], _rooms int[], _open_at bigint[],
    OUT exits text[], OUT rooms int[], OUT room int, OUT look_at bigint, OUT open_at bigint
)
LANGUAGE plpgsql SET enable_hashjoin = on
AS $$
#variable_conflict use_column
BEGIN
    SELECT array_agg(u.exit ORDER BY u.nth) FILTER (WHERE (w.room = 0) IS NOT TRUE),
           array_agg(w.room ORDER BY u.nth) FILTER (WHERE (w.room = 0) IS NOT TRUE),
           CASE WHEN bool_and(w.room IS NOT NULL) THEN sum(w.room) END,
           min(least(greatest(w.open_at, _now + 100), _now + 60000)) FILTER (WHERE w.room = 0),
           min(w.open_at) FILTER (WHERE w.room = 0)
    INTO exits, rooms, room, look_at, open_at
    FROM unnest(_exits) WITH ORDINALITY AS u (exit, nth)
    LEFT JOIN unnest(_names, _rooms, _open_at) AS w (name, room, open_at) ON w.name = u.exit;
END
$$;
