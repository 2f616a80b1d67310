-- Who the worker is, and that it was seen now (to half a second). Answers its number.
CREATE FUNCTION heartbeat(_now bigint, _info worker_fields) RETURNS int
LANGUAGE plpgsql
AS $$
DECLARE
    _worker record;
BEGIN
    SELECT id, seen_at INTO _worker FROM worker WHERE worker_id = _info.worker_id;
    IF NOT FOUND THEN
        INSERT INTO worker (worker_id, machine, pid, pid_started, notebook, duties, seen_at)
        VALUES (_info.worker_id, _info.machine, _info.pid, _info.pid_started, _info.notebook, _info.duties, _now)
        ON CONFLICT (worker_id) DO UPDATE SET seen_at = excluded.seen_at
        RETURNING id INTO _worker.id;
    ELSIF _worker.seen_at < _now - 500 THEN
        -- Another call of the same worker may be saying the same at this moment: nobody waits for that.
        UPDATE worker SET seen_at = _now, gone = false
        WHERE id = (SELECT w.id FROM worker AS w WHERE w.id = _worker.id FOR NO KEY UPDATE SKIP LOCKED);
    END IF;
    RETURN _worker.id;
END
$$;
