-- Workers that were not seen for a while and hold nothing go; those known to be dead need not be looked at again.
CREATE FUNCTION forget_workers(_now bigint, _gone int[]) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    UPDATE worker SET gone = true
    WHERE id = ANY (_gone) AND NOT gone
      AND NOT EXISTS (SELECT 1 FROM task AS t WHERE t.state = 2 AND t.worker = worker.id);
    IF EXISTS (SELECT 1 FROM worker AS w WHERE w.seen_at < _now - {{WORKER_KEPT}}) THEN
        DELETE FROM worker
        WHERE id = ANY (ARRAY(SELECT w.id FROM worker AS w WHERE w.seen_at < _now - {{WORKER_KEPT}} FOR UPDATE SKIP LOCKED))
          AND NOT EXISTS (SELECT 1 FROM task AS t WHERE t.state = 2 AND t.worker = worker.id);
    END IF;
END
$$;
