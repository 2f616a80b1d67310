INSERT INTO task (run, line, site, state, priority, depth, not_before, expires_at, url, handler, extra, part)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
