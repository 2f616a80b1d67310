-- name: find_limits
-- What is known about rate limits of these sites and their slots, and from when on one of slots is one of the site.
SELECT json_array(
    (SELECT json_group_array(json_array(x.site, x.exit, x.limited_at, x.limited_until, x.probing, x.probe, x.cause))
     FROM json_each(:sites) AS j CROSS JOIN slot_limit AS x ON x.site = j.value),
    (SELECT json_group_array(json_array(x.site, x.blocked_until, x.probing, x.probe, x.cause))
     FROM json_each(:sites) AS j CROSS JOIN site_limit AS x ON x.site = j.value),
    (SELECT json_group_array(json_array(s.id, s.limit_exits, s.limit_window))
     FROM json_each(:sites) AS j CROSS JOIN site AS s ON s.id = j.value)
)

-- name: save_slot_limits
-- Write down limits of slots.
INSERT INTO slot_limit (site, exit, limited_at, limited_until, probing, probe, cause)
VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (site, exit) DO UPDATE SET
    limited_at = excluded.limited_at,
    limited_until = excluded.limited_until,
    probing = excluded.probing,
    probe = excluded.probe,
    cause = excluded.cause

-- name: save_site_limits
-- Write down limits of sites over all their exits.
INSERT INTO site_limit (site, blocked_until, probing, probe, cause)
VALUES (?, ?, ?, ?, ?)
ON CONFLICT (site) DO UPDATE SET
    blocked_until = excluded.blocked_until,
    probing = excluded.probing,
    probe = excluded.probe,
    cause = excluded.cause

-- name: mark_limited
-- Claims have something to heed at these sites.
UPDATE site SET limited = 1 WHERE id IN (SELECT value FROM json_each(:sites))

-- name: forget_limits
-- Limits of slots that have been over for so long that nobody heeds them. Answers their sites.
DELETE FROM slot_limit
WHERE (site, exit) IN (
    SELECT x.site, x.exit
    FROM slot_limit AS x
    CROSS JOIN slot AS k ON k.site = x.site AND k.exit = x.exit
    WHERE x.limited_until < :before AND k.blocked_until < :before AND k.live = 0
    ORDER BY x.limited_until
    LIMIT :most)
RETURNING site

-- name: forget_site_limits
-- The same of these sites over all their exits, where no slot is limited.
DELETE FROM site_limit
WHERE site IN (SELECT value FROM json_each(:sites)) AND blocked_until < :before
  AND NOT EXISTS (SELECT 1 FROM slot_limit AS x WHERE x.site = site_limit.site)

-- name: unmark_limited
-- Claims have nothing to heed at these sites any more, where that is so.
UPDATE site SET limited = 0
WHERE id IN (SELECT value FROM json_each(:sites))
  AND NOT EXISTS (SELECT 1 FROM slot_limit AS x WHERE x.site = site.id)
  AND NOT EXISTS (SELECT 1 FROM site_limit AS x WHERE x.site = site.id)
