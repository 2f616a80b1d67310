-- The verb `enqueue`. Errors: SH404 = no such run, SH410 = it was cancelled.
CREATE FUNCTION enqueue(
    _now bigint, _run_id text, _url text[], _site text[], _key bytea[], _lane text[], _handler text[], _priority int[],
    _depth int[], _wait bigint[], _ttl bigint[], _extra text[], OUT accepted int, OUT duplicates int
)
LANGUAGE plpgsql
AS $$
DECLARE
    _number int;
    _runs int[];
    _fresh boolean[];
BEGIN
    _now := moment(_now);
    _number := number_of(_run_id);
    LOCK TABLE tally_change IN ROW EXCLUSIVE MODE;
    _runs := array_fill(_number, ARRAY[cardinality(_url)]);
    _fresh := remember(_runs, _key);
    PERFORM open_places(_runs, _site, _lane, _fresh);
    PERFORM 1 FROM site
    WHERE key = ANY (ARRAY(SELECT DISTINCT u.site FROM unnest(_site, _fresh) AS u (site, fresh) WHERE u.fresh))
    ORDER BY id FOR NO KEY UPDATE;
    accepted := put_in_line(_now, _runs, _url, _site, _lane, _handler, _priority, _depth, _wait, _ttl, _extra, _fresh);
    duplicates := cardinality(_url) - accepted;
    IF duplicates > 0 THEN
        INSERT INTO tally_change (run, line, duplicates) VALUES (_number, 0, duplicates);
    END IF;
    PERFORM go_on(_number, accepted);
END
$$;
