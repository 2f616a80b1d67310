-- Pages that are let in again, each by its two names of 8 bytes one behind the other (whatever is longer or shorter is none):
-- how they ended before does not count any more.
CREATE FUNCTION forget_endings(_run int[], _names bytea[]) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    DELETE FROM ending WHERE ctid = ANY (ARRAY(
        SELECT e.ctid
        FROM (
            SELECT u.run, n.name
            FROM unnest(_run, _names) AS u (run, names)
            CROSS JOIN LATERAL (VALUES (substr(u.names, 1, 8)), (substr(u.names, 9, 8))) AS n (name)
            WHERE octet_length(u.names) = 16
            ORDER BY 1, 2
        ) AS n
        CROSS JOIN LATERAL (
            SELECT ending.ctid FROM ending WHERE ending.run = n.run AND ending.name = n.name FOR UPDATE) AS e));
END
$$;
