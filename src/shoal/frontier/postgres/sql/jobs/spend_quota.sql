-- How much of its quota each job uses, itself included, in the order they come; more than it has = it is not to be.
-- What is known already costs nothing, and what has no quota either.
CREATE FUNCTION spend_quota(
    _now bigint, _known int[], _owner text[], _most bigint[], _window bigint[], OUT used bigint[], OUT resets_at bigint[]
)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
BEGIN
    WITH asked AS MATERIALIZED (
        SELECT u.*, _now - _now % u.window + u.window AS resets_at
        FROM unnest(_known, _owner, _most, _window) WITH ORDINALITY AS u (known, owner, most, "window", nth)
    ), costs AS MATERIALIZED (
        SELECT a.nth, a.owner, a.most, a.resets_at,
               coalesce(q.used, 0) + row_number() OVER (PARTITION BY a.owner ORDER BY a.nth) AS used
        FROM asked AS a
        LEFT JOIN LATERAL (
            SELECT quota.used FROM quota WHERE quota.owner = a.owner AND quota.resets_at = a.resets_at OFFSET 0
        ) AS q ON true
        WHERE a.known IS NULL AND a.most IS NOT NULL
    ), written AS (
        INSERT INTO quota (owner, resets_at, used)
        SELECT c.owner, max(c.resets_at), max(c.used) FROM costs AS c WHERE c.used <= c.most GROUP BY c.owner
        ON CONFLICT (owner) DO UPDATE SET resets_at = excluded.resets_at, used = excluded.used
    )
    SELECT array_agg(c.used ORDER BY a.nth), array_agg(c.resets_at ORDER BY a.nth) INTO used, resets_at
    FROM asked AS a LEFT JOIN LATERAL (SELECT * FROM costs AS c WHERE c.nth = a.nth OFFSET 0) AS c ON true;
END
$$;
