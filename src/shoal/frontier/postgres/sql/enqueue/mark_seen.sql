-- Which of these keys their runs have not seen, each once; from now on they have. No key = always new. Neither is a key
-- what has 16 bytes: the two names of a page that is let in again, so that how it ended before does not count any more.
-- A key that another transaction is just adding is waited for, before anything else is locked.
CREATE FUNCTION mark_seen(_run int[], _key bytea[]) RETURNS boolean[]
LANGUAGE plpgsql SET enable_hashjoin = on
AS $$
DECLARE
    _new record;
    _fresh boolean[];
BEGIN
    WITH new AS (
        INSERT INTO seen (run, key)
        SELECT a.run, a.key FROM unnest(_run, _key) AS a (run, key)
        WHERE octet_length(a.key) <> 16 AND a.run IS NOT NULL
        ORDER BY 1, 2
        ON CONFLICT DO NOTHING
        RETURNING seen.run, seen.key
    )
    SELECT array_agg(w.run) AS run, array_agg(w.key) AS key INTO _new FROM new AS w;
    IF cardinality(_new.key) = cardinality(_run) THEN
        RETURN array_fill(true, ARRAY[cardinality(_run)]);
    END IF;
    IF EXISTS (SELECT 1 FROM unnest(_key) AS k (key) WHERE octet_length(k.key) = 16) THEN
        PERFORM forget_endings(_run, _key);
    END IF;
    SELECT array_agg(a.run IS NOT NULL AND (a.key IS NULL OR octet_length(a.key) = 16 OR (a.nth = 1 AND w.key IS NOT NULL))
                     ORDER BY a.n)
    INTO _fresh
    FROM (
        SELECT a.run, a.key, a.n, row_number() OVER (PARTITION BY a.run, a.key ORDER BY a.n) AS nth
        FROM unnest(_run, _key) WITH ORDINALITY AS a (run, key, n)
    ) AS a
    LEFT JOIN unnest(_new.run, _new.key) AS w (run, key) ON w.run = a.run AND w.key = a.key;
    RETURN _fresh;
END
$$;
