UPDATE exit SET failures = 0, quarantined_until = 0, banned_until = 0, probe = 0 WHERE name = :name
