-- Where a task stands among those of its line and site: higher priority first, then first come.
CREATE FUNCTION place_of(_priority int, _id bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE
AS $$ SELECT least(greatest(-_priority::bigint, -1048576), 1048575) * 4398046511104 + _id $$;
