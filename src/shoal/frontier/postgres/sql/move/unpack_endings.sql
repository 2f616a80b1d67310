-- entry: verb
-- How pages of an arriving run ended that were not done.
CREATE FUNCTION unpack_endings(
    _run_id text, _move text, _name bytea[], _state text[], _ended_at bigint[], _reason text[], _url text[]
) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    _run run;
BEGIN
    _run := arriving_run(_run_id, _move);
    INSERT INTO ending (ended_at, run, name, state, reason, url)
    SELECT u.ended_at, _run.id, u.name, u.state, u.reason, u.url
    FROM unnest(_name, _state, _ended_at, _reason, _url) AS u (name, state, ended_at, reason, url);
END
$$;
