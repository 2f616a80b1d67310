-- The moment at which a verb happens: the start of its transaction by this server's clock, unless a test brings its own.
CREATE FUNCTION moment(_now bigint) RETURNS bigint
LANGUAGE sql STABLE
AS $$ SELECT coalesce(_now, floor(extract(epoch FROM now()) * 1000)::bigint) $$;
