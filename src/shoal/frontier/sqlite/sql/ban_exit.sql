INSERT INTO exit (name, quarantined_until) VALUES (:name, :until)
ON CONFLICT (name) DO UPDATE SET quarantined_until = max(quarantined_until, excluded.quarantined_until)
