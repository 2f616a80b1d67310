-- Clocks only ever go forward.
INSERT INTO slot (site, exit, begun_at, begun_before, blocked_until, penalty, last_at)
VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (site, exit) DO UPDATE SET
    begun_at = max(begun_at, excluded.begun_at),
    begun_before = max(begun_before, excluded.begun_before),
    blocked_until = max(blocked_until, excluded.blocked_until),
    penalty = max(penalty, excluded.penalty),
    last_at = max(last_at, excluded.last_at)
