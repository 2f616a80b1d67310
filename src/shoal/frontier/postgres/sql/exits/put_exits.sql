-- entry: verb
-- `put` of the book of exits: add them, or change what was said about them; their health stays. Each is named once.
-- _pools: as a JSON list each.
CREATE FUNCTION put_exits(_name text[], _address text[], _pools text[], _cap int[]) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    INSERT INTO exit_book (name, address, pools, cap)
    SELECT u.name, u.address, ARRAY(SELECT json_array_elements_text(u.pools::json)), u.cap
    FROM unnest(_name, _address, _pools, _cap) AS u (name, address, pools, cap)
    ORDER BY u.name COLLATE "C"
    ON CONFLICT (name) DO UPDATE SET address = excluded.address, pools = excluded.pools, cap = excluded.cap;
END
$$;
