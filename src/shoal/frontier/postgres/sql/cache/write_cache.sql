-- entry: verb
-- The verb `put` of the cache.
CREATE FUNCTION write_cache(_now bigint, _key text[], _value bytea[], _ttl bigint[]) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM write_entries(moment(_now), _key, _value, _ttl);
END
$$;
