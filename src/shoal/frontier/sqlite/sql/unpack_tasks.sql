INSERT INTO task (id, run, line, site, state, priority, depth, attempts, crashes, not_before, expires_at, url, handler, extra)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
