-- Lock the sites of a line that may be visited by `_horizon`, longest due first; null = there are none.
-- Those that others hold are passed over, unless the caller is patient (and holds nothing yet).
CREATE FUNCTION lock_due(_line int, _horizon bigint, _most int, _patient boolean) RETURNS int[]
LANGUAGE plpgsql
AS $$
DECLARE
    _sites int[];
BEGIN
    IF _patient THEN
        _sites := ARRAY(
            SELECT v.site FROM visit AS v WHERE v.line = _line AND v.due_at <= _horizon
            ORDER BY v.due_at LIMIT _most);
        PERFORM 1 FROM site WHERE id = ANY (_sites) ORDER BY id FOR NO KEY UPDATE;
        RETURN nullif(_sites, '{}');
    END IF;
    SELECT array_agg(d.site) INTO _sites
    FROM (
        SELECT v.site
        FROM visit AS v JOIN site AS s ON s.id = v.site
        WHERE v.line = _line AND v.due_at <= _horizon
        ORDER BY v.due_at
        LIMIT _most
        FOR NO KEY UPDATE OF s SKIP LOCKED
    ) AS d;
    RETURN _sites;
END
$$;
