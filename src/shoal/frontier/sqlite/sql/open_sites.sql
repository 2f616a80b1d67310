INSERT INTO site (key, delay, site_delay, concurrency, hard_timeout, lease, limit_exits, limit_window)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (key) DO UPDATE SET
    delay = excluded.delay,
    site_delay = excluded.site_delay,
    concurrency = excluded.concurrency,
    hard_timeout = excluded.hard_timeout,
    lease = excluded.lease,
    limit_exits = excluded.limit_exits,
    limit_window = excluded.limit_window
