-- entry: verb
-- These callbacks have been seen to.
CREATE FUNCTION clear_callbacks(_id text[]) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    UPDATE job SET callback = NULL
    WHERE callback IS NOT NULL AND run = ANY (ARRAY(SELECT r.id FROM run AS r WHERE r.run_id = ANY (_id)));
END
$$;
