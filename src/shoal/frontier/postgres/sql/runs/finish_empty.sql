-- Finish those of these runs that have nothing left, now that nobody else can decide about them.
CREATE FUNCTION finish_empty(_now bigint, _runs int[]) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    IF _runs <> '{}' THEN
        PERFORM 1 FROM run WHERE id = ANY (_runs) ORDER BY id FOR NO KEY UPDATE;
        _runs := few_left(_runs, 1);
        UPDATE run SET state = 'finished', ended_at = _now, results_until = _now + results_ttl
        WHERE id = ANY (_runs) AND sealed AND state = 'running';
    END IF;
END
$$;
