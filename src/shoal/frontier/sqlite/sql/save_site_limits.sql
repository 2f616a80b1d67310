INSERT INTO site_limit (site, blocked_until, probing, probe, cause)
VALUES (?, ?, ?, ?, ?)
ON CONFLICT (site) DO UPDATE SET
    blocked_until = excluded.blocked_until,
    probing = excluded.probing,
    probe = excluded.probe,
    cause = excluded.cause
