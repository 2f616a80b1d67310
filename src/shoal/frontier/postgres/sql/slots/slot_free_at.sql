-- From when on a slot may be used. One that is not there yet (null): at once.
CREATE FUNCTION slot_free_at(_begun_at bigint, _pace bigint, _blocked_until bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE
AS $$ SELECT greatest(coalesce(_begun_at, 0) + _pace, _blocked_until) $$;
