-- entry: verb
-- Forget a document. Answers whether there was one.
CREATE FUNCTION delete_record(_kind text, _name text) RETURNS boolean
LANGUAGE plpgsql
AS $$
BEGIN
    DELETE FROM record WHERE kind = _kind AND name = _name;
    RETURN FOUND;
END
$$;
