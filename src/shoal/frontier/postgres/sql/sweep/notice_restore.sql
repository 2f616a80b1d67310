-- entry: verb
-- After a dump was restored into another server, transactions are numbered anew, below those that the store remembers.
CREATE FUNCTION notice_restore() RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    IF (SELECT g.upto FROM ledger AS g) <= pg_snapshot_xmax(pg_current_snapshot()) THEN
        RETURN;
    END IF;
    LOCK TABLE tally_change, item IN SHARE ROW EXCLUSIVE MODE;
    UPDATE ledger SET upto = '0', shift = coalesce(greatest(
        (SELECT max(i.id) >> 20 FROM item AS i), (SELECT max(n.id) >> 20 FROM note AS n)), 0) + 1
    WHERE upto > pg_snapshot_xmax(pg_current_snapshot());
    DELETE FROM line_floor;
    UPDATE tally_change SET xid = pg_current_xact_id();
END
$$;
