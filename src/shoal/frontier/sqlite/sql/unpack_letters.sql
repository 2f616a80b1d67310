INSERT INTO dead (task, run, line, site, priority, depth, attempts, crashes, url, handler, extra, reason, died_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
