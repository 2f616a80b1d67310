-- What settlements that stood leave behind besides their results: notes, entries of the cache, and what they saved. Each
-- comes with the position of its settlement. _after: as many notes were kept by this transaction before.
-- Nothing is left of a run that was cancelled, except the counts; but what it held is let go of (_entry_keep = 0).
CREATE FUNCTION leave_behind(
    _now bigint, _run_id text[], _stood bigint[], _after int,
    _note_of int[], _note_stream text[], _note_body bytea[], _note_keep bigint[],
    _entry_of int[], _entry_key text[], _entry_value bytea[], _entry_keep bigint[],
    _saved_of int[], _saved_requests int[], _saved_bytes bigint[]
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
    FROM unnest(_entry_of, _entry_key, _entry_value, _entry_keep) WITH ORDINALITY AS u (settlement, key, value, keep, nth)
    WHERE u.settlement = ANY (_live) OR u.keep = 0 AND u.settlement = ANY (_stood);
    PERFORM keep_notes(_now, array_agg(u.stream ORDER BY u.nth), array_agg(u.body ORDER BY u.nth),
                       array_agg(u.keep ORDER BY u.nth), _after)
    FROM unnest(_note_of, _note_stream, _note_body, _note_keep) WITH ORDINALITY AS u (settlement, stream, body, keep, nth)
    WHERE u.settlement = ANY (_live);
    INSERT INTO tally_change (run, line, saved_requests, saved_bytes)
    SELECT r.id, 0, sum(u.requests), sum(u.bytes)
    FROM unnest(_saved_of, _saved_requests, _saved_bytes) AS u (settlement, requests, bytes)
    CROSS JOIN LATERAL (SELECT run.id FROM run WHERE run.run_id = _run_id[u.settlement] OFFSET 0) AS r
    WHERE u.settlement = ANY (_stood)
    GROUP BY r.id;
END
$$;
