-- How many more leases a slot can give. While the site or the slot is on probation, one request goes first.
CREATE FUNCTION room_of(
    _concurrency int, _live int, _site_probing boolean, _site_probe bigint, _slot_probing boolean, _slot_probe bigint
) RETURNS int
LANGUAGE sql IMMUTABLE
AS $$
    SELECT least(_concurrency - coalesce(_live, 0), CASE WHEN _site_probing THEN (_site_probe = 0)::int END,
                 CASE WHEN _slot_probing THEN (_slot_probe = 0)::int END)
$$;
