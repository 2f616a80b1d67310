INSERT INTO exit (name, failures, quarantined_until, probe)
VALUES (?, ?, ?, ?)
ON CONFLICT (name) DO UPDATE SET
    failures = excluded.failures,
    quarantined_until = excluded.quarantined_until,
    probe = excluded.probe
