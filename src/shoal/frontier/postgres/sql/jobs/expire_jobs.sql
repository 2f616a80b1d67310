-- entry: verb
-- The verb `expire`: the results of at most so many jobs whose time is over go, with at most _rows rows of each kind; and
-- at most so many jobs that have been gone since before _remember are forgotten. Nothing, if somebody else is doing it.
CREATE FUNCTION expire_jobs(
    _now bigint, _remember bigint, _most int, _rows int, OUT expired int, OUT forgotten int, OUT more boolean
)
LANGUAGE plpgsql
AS $$
DECLARE
    _old int[];
    _over int[];
BEGIN
    expired := 0;
    forgotten := 0;
    more := false;
    IF NOT pg_try_advisory_xact_lock(hashtext('shoal expire'), 'job'::regclass::oid::int) THEN
        RETURN;
    END IF;
    _now := moment(_now);
    LOCK TABLE tally_change, item IN ROW EXCLUSIVE MODE;
    _old := ARRAY(SELECT b.run FROM job AS b WHERE b.gone_at <= _now - _remember ORDER BY b.gone_at LIMIT _most);
    PERFORM fold_tally();
    IF _old <> '{}' THEN
        forgotten := forget_jobs(_old);
    END IF;
    -- One that was cancelled waits until its last task has ended.
    _over := ARRAY(
        SELECT r.id FROM run AS r
        WHERE r.results_until <= _now AND r.is_job AND (r.state = 'finished' OR remaining_of(r.id) = 0)
        ORDER BY r.results_until
        LIMIT _most);
    more := cardinality(_old) = _most;
    IF _over = '{}' THEN
        RETURN;
    ELSIF delete_results(_over, _rows) THEN
        more := true;
        RETURN;
    END IF;
    UPDATE job SET gone_at = _now, callback = NULL, error = NULL WHERE run = ANY (_over);
    UPDATE run SET results_until = NULL, input = NULL WHERE id = ANY (_over);
    expired := cardinality(_over);
    more := more OR expired = _most;
END
$$;
