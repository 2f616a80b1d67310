-- The value under a key; null = there is none, or its time is over.
CREATE FUNCTION read_cache(_now bigint, _key text) RETURNS bytea
LANGUAGE plpgsql
AS $$
BEGIN
    RETURN (SELECT c.value FROM cache AS c WHERE c.key = _key AND c.expires_at > moment(_now));
END
$$;
