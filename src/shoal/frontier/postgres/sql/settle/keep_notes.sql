-- Notes of one exchange, in their order. _after: as many were kept by this transaction before.
CREATE FUNCTION keep_notes(_now bigint, _stream text[], _text bytea[], _keep bigint[], _after int) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    INSERT INTO note (id, stream, expires_at, body)
    SELECT ((pg_current_xact_id()::text::bigint + (SELECT g.shift FROM ledger AS g)) << 20) + _after + u.nth, u.stream,
           _now + u.keep, u.body
    FROM unnest(_stream, _text, _keep) WITH ORDINALITY AS u (stream, body, keep, nth);
END
$$;
