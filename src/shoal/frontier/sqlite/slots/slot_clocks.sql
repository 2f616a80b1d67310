-- name: save_slots
-- Write slots back as they are now, or for the first time.
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

-- name: set_site_clocks
-- Write back the clocks of sites over all their exits.
UPDATE site
SET begun_at = j.column2, begun_before = j.column3, last_token = j.column4
FROM (VALUES (?, ?, ?, ?)) AS j
WHERE site.id = j.column1
