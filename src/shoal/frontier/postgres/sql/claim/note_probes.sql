-- Some of these leases are the ones by which exits are tried again. The caller holds the locks of those exits.
CREATE FUNCTION note_probes(_tried text[], _tokens bigint[]) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    IF _tried IS NULL THEN
        RETURN;
    END IF;
    UPDATE exit_book SET probe = t.token
    FROM task AS t
    WHERE t.state = 2 AND t.lease_until > 0 AND t.token = ANY (_tokens) AND t.exit = exit_book.name
      AND exit_book.name = ANY (_tried);
END
$$;
