-- Every transaction older than this that writes here has ended: nothing more can appear below it.
-- All who write hold a lock on these tables before they get their number, so that a transaction of somebody else in this
-- database server, however long it takes, need not be waited for.
CREATE FUNCTION finished_before() RETURNS xid8
LANGUAGE plpgsql
AS $$
DECLARE
    _snapshot pg_snapshot := pg_current_snapshot();
    _oldest bigint;
BEGIN
    IF pg_snapshot_xmin(_snapshot) = pg_snapshot_xmax(_snapshot) THEN
        RETURN pg_snapshot_xmax(_snapshot);
    END IF;
    SELECT min(x.xid::text::bigint) INTO _oldest
    FROM pg_snapshot_xip(_snapshot) AS x (xid)
    JOIN pg_locks AS t ON t.locktype = 'transactionid' AND t.transactionid = x.xid::xid AND t.granted
    JOIN pg_locks AS w ON w.pid = t.pid AND w.locktype = 'relation' AND w.mode = 'RowExclusiveLock'
        AND w.relation = 'tally_change'::regclass
        AND w.database = (SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database());
    RETURN coalesce(_oldest::text::xid8, pg_snapshot_xmax(_snapshot));
END
$$;
