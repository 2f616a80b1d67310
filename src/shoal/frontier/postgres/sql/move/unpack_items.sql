-- entry: verb
-- Batches of items of an arriving run, behind those that it has.
CREATE FUNCTION unpack_items(_run_id text, _move text, _n int[], _url text[], _group text[], _body bytea[]) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    _run run;
BEGIN
    LOCK TABLE tally_change, item IN ROW EXCLUSIVE MODE;
    _run := arriving_run(_run_id, _move);
    INSERT INTO item (id, run, n, url, group_name, body)
    SELECT ((pg_current_xact_id()::text::bigint + (SELECT g.shift FROM ledger AS g)) << 20) + u.nth, _run.id, u.n, u.url,
           u.group_name, u.body
    FROM unnest(_n, _url, _group, _body) WITH ORDINALITY AS u (n, url, group_name, body, nth);
END
$$;
