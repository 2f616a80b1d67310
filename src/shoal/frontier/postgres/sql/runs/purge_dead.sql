-- entry: verb
-- The verb `purge_dead`: what is left is that there were such. _task: null = all of the run. Raises SH404 = no such run.
CREATE FUNCTION purge_dead(_run_id text, _task bigint[]) RETURNS int
LANGUAGE plpgsql
AS $$
DECLARE
    _number int;
    _many int;
BEGIN
    SELECT id INTO _number FROM run WHERE run_id = _run_id;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'no run %', _run_id USING ERRCODE = 'SH404';
    END IF;
    WITH purged AS (
        DELETE FROM dead WHERE run = _number AND (_task IS NULL OR task = ANY (_task)) RETURNING dead.*
    ), told AS (
        INSERT INTO ending
        SELECT e.*
        FROM purged AS p
        CROSS JOIN LATERAL ending_of(p.run, p.url, p.extra, 'dead', p.died_at, p.reason) AS e
    )
    SELECT count(*) INTO _many FROM purged;
    RETURN _many;
END
$$;
