-- From when on a site as a whole may be visited.
CREATE FUNCTION site_free_at(_site_delay bigint, _begun_at bigint, _blocked_until bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE
AS $$ SELECT greatest(CASE WHEN _site_delay > 0 THEN _begun_at + _site_delay END, _blocked_until) $$;
