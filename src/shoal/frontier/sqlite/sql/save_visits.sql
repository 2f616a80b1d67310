INSERT INTO visit (line, site, due_at, ready)
VALUES (?, ?, ?, ?)
ON CONFLICT (line, site) DO UPDATE SET due_at = excluded.due_at, ready = excluded.ready
