-- entry: look
-- Workers of one machine that may hold leases, to see whether their processes are still there.
CREATE FUNCTION find_holders(_machine text)
RETURNS TABLE (worker int, pid bigint, pid_started bigint, notebook text)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY SELECT w.id, w.pid, w.pid_started, w.notebook FROM worker AS w WHERE w.machine = _machine AND NOT w.gone;
END
$$;
