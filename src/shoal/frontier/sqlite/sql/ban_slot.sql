INSERT INTO slot (site, exit, blocked_until) VALUES (:site, :exit, :until)
ON CONFLICT (site, exit) DO UPDATE SET blocked_until = max(blocked_until, excluded.blocked_until)
