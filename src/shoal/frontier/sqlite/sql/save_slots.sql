INSERT INTO slot (site, exit, begun_at, begun_before, last_token, blocked_until, live, penalty, last_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (site, exit) DO UPDATE SET
    begun_at = excluded.begun_at,
    begun_before = excluded.begun_before,
    last_token = excluded.last_token,
    blocked_until = excluded.blocked_until,
    live = excluded.live,
    penalty = excluded.penalty,
    last_at = excluded.last_at
