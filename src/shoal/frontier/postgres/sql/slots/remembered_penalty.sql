-- How many of the rate limits in a row of a slot still count: as `shoal.core.politeness.remembered`.
CREATE FUNCTION remembered_penalty(_penalty int, _limited_until bigint, _now bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE  -- as all of this folder that are: so that they become a part of the statements that use them
AS $$ SELECT greatest(0, _penalty - greatest(0, _now - _limited_until) / {{QUIET}}) $$;
