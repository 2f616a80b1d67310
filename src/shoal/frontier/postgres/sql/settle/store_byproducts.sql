-- What settlements that stood leave behind besides their results. _notes_before: as many were kept by this transaction
-- before. Nothing is left of a run that was cancelled, except the counts; but what it held is let go of (entry_ttl = 0).
CREATE FUNCTION store_byproducts(
    _now bigint, _run_id text[], _stood bigint[], _notes_before int, _byproducts byproducts
) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    _live bigint[];
BEGIN
    _live := ARRAY(
        SELECT s.nth FROM unnest(_stood) AS s (nth)
        CROSS JOIN LATERAL (
            SELECT 1 FROM run WHERE run.run_id = _run_id[s.nth] AND run.state <> 'cancelled' OFFSET 0) AS r);
    PERFORM write_entries(_now, array_agg(u.key ORDER BY u.nth), array_agg(u.value ORDER BY u.nth),
                          array_agg(u.keep ORDER BY u.nth))
    FROM unnest(_byproducts.entry_of, _byproducts.entry_key, _byproducts.entry_value, _byproducts.entry_ttl)
         WITH ORDINALITY AS u (settlement, key, value, keep, nth)
    WHERE u.settlement = ANY (_live) OR u.keep = 0 AND u.settlement = ANY (_stood);
    PERFORM keep_notes(_now, array_agg(u.stream ORDER BY u.nth), array_agg(u.body ORDER BY u.nth),
                       array_agg(u.keep ORDER BY u.nth), _notes_before)
    FROM unnest(_byproducts.note_of, _byproducts.note_stream, _byproducts.note_body, _byproducts.note_ttl)
         WITH ORDINALITY AS u (settlement, stream, body, keep, nth)
    WHERE u.settlement = ANY (_live);
    INSERT INTO tally_change (run, line, saved_requests, saved_bytes)
    SELECT r.id, 0, sum(u.requests), sum(u.bytes)
    FROM unnest(_byproducts.saved_of, _byproducts.saved_requests, _byproducts.saved_bytes) AS u (settlement, requests, bytes)
    CROSS JOIN LATERAL (SELECT run.id FROM run WHERE run.run_id = _run_id[u.settlement] OFFSET 0) AS r
    WHERE u.settlement = ANY (_stood)
    GROUP BY r.id;
END
$$;
