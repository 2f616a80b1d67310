INSERT INTO site (key, delay, site_delay, concurrency, hard_timeout, lease, limit_exits, limit_window)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (key) DO NOTHING
