INSERT INTO slot_limit (site, exit, limited_at, limited_until, probing, probe, cause)
VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (site, exit) DO UPDATE SET
    limited_at = excluded.limited_at,
    limited_until = excluded.limited_until,
    probing = excluded.probing,
    probe = excluded.probe,
    cause = excluded.cause
