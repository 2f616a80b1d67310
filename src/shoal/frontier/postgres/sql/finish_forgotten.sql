-- Runs with nothing left that nobody has finished: their last tasks were ended by many at once.
CREATE FUNCTION finish_forgotten(_now bigint) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    _runs int[];
BEGIN
    _runs := ARRAY(SELECT r.id FROM run AS r WHERE r.state = 'running' AND r.sealed AND remaining_of(r.id) = 0);
    IF _runs <> '{}' THEN
        PERFORM 1 FROM run WHERE id = ANY (_runs) ORDER BY id FOR NO KEY UPDATE;
        UPDATE run SET state = 'finished', ended_at = _now, results_until = _now + results_ttl
        WHERE id = ANY (_runs) AND sealed AND state = 'running' AND remaining_of(id) = 0;
    END IF;
END
$$;
