INSERT INTO exit (name, banned_until) VALUES (:name, :until)
ON CONFLICT (name) DO UPDATE SET banned_until = max(banned_until, excluded.banned_until)
