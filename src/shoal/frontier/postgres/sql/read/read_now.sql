-- entry: look
-- What time it is in this store.
CREATE FUNCTION read_now(_now bigint) RETURNS bigint
LANGUAGE plpgsql
AS $$
BEGIN
    RETURN moment(_now);
END
$$;
