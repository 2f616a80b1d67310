-- entry: verb
-- The verb `forget_notes`.
CREATE FUNCTION forget_notes(_stream text) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    DELETE FROM note WHERE stream = _stream;
END
$$;
