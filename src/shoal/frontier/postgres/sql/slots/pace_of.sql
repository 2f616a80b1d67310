-- How far apart the requests of one slot of a site are: the strictest of its rules, of its robots.txt, and of what it suffers.
CREATE FUNCTION pace_of(_delay bigint, _crawl_delay bigint, _pace bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE
AS $$ SELECT greatest(_delay, _crawl_delay, _pace) $$;
