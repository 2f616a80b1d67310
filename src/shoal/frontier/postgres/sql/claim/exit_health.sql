-- What is to be heeded about these exits: how often each has failed, how many leases may still leave by it (null = any
-- number), and if none, from when on it is worth another look. Null, if there is nothing to heed.
-- _tried: exits of which one lease goes first. _guarded: some of the rows are locked now, because claims by these exits must
-- come one after the other; what others have locked cannot be used, unless it is waited for (_wait).
CREATE FUNCTION exit_health(
    _now bigint, _exits text[], _wait boolean, OUT names text[], OUT failures int[], OUT rooms int[], OUT open_at bigint[],
    OUT tried text[], OUT guarded boolean
)
LANGUAGE plpgsql SET enable_hashjoin = on
AS $$
#variable_conflict use_column
DECLARE
    _held text[];
BEGIN
    _held := ARRAY(
        SELECT b.name FROM exit_book AS b
        WHERE (b.failures > 0 OR b.quarantined_until > 0 OR b.banned_until > 0 OR b.cap > 0) AND b.name = ANY (_exits)
          AND (b.cap > 0 OR b.failures >= {{QUARANTINE_AFTER}} AND b.quarantined_until BETWEEN 1 AND _now));
    IF _wait THEN
        PERFORM 1 FROM exit_book WHERE name = ANY (_held) ORDER BY name FOR NO KEY UPDATE;
    ELSIF _held <> '{}' THEN
        _held := ARRAY(
            SELECT b.name FROM exit_book AS b WHERE b.name = ANY (_held) ORDER BY b.name FOR NO KEY UPDATE SKIP LOCKED);
    END IF;
    WITH leased AS MATERIALIZED (
        SELECT t.exit, count(*) AS live, array_agg(t.token) AS tokens FROM task AS t
        WHERE _held <> '{}' AND t.state = 2 AND t.lease_until > 0 AND t.exit = ANY (_held)
        GROUP BY t.exit
    ), known AS (
        SELECT b.name, b.failures, greatest(b.quarantined_until, b.banned_until) AS alone_until, b.cap, coalesce(o.live, 0) AS live,
               b.failures >= {{QUARANTINE_AFTER}} AND b.quarantined_until > 0 AS half_open, coalesce(b.probe = ANY (o.tokens), false) AS probed,
               (b.cap > 0 OR b.failures >= {{QUARANTINE_AFTER}} AND b.quarantined_until BETWEEN 1 AND _now) AND NOT b.name = ANY (_held) AS taken
        FROM exit_book AS b
        LEFT JOIN leased AS o ON o.exit = b.name
        WHERE (b.failures > 0 OR b.quarantined_until > 0 OR b.banned_until > 0 OR b.cap > 0) AND b.name = ANY (_exits)
    )
    SELECT array_agg(k.name), array_agg(k.failures),
           array_agg(CASE WHEN k.alone_until > _now OR k.taken OR k.half_open AND k.probed THEN 0
                          ELSE least(CASE WHEN k.half_open THEN 1 END,
                                     CASE WHEN k.cap > 0 THEN greatest(0, k.cap - k.live) END) END),
           array_agg(CASE WHEN k.alone_until > _now THEN k.alone_until WHEN k.taken THEN _now ELSE _now + 5000 END),
           array_agg(k.name) FILTER (WHERE k.half_open)
    INTO names, failures, rooms, open_at, tried
    FROM known AS k;
    guarded := _held <> '{}';
END
$$;
