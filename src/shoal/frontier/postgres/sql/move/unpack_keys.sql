-- entry: verb
-- Keys that an arriving run has seen.
CREATE FUNCTION unpack_keys(_run_id text, _move text, _key bytea[]) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    _run run;
BEGIN
    _run := arriving_run(_run_id, _move);
    INSERT INTO seen (run, key) SELECT _run.id, u.key FROM unnest(_key) AS u (key) ORDER BY 2 ON CONFLICT DO NOTHING;
END
$$;
