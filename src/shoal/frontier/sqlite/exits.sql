-- name: read_exits
-- All exits in the book: how they do, their live leases, and the sites (at most 100) where they are blocked.
SELECT e.name, e.address, e.pools, e.cap, e.failures, max(e.quarantined_until, e.banned_until),
       (SELECT count(*) FROM lease AS l WHERE l.exit = e.name),
       (SELECT json_group_array(json_array(key, blocked_until))
        FROM (SELECT s.key, k.blocked_until
              FROM slot_limit AS x
              CROSS JOIN slot AS k ON k.site = x.site AND k.exit = x.exit AND k.blocked_until > :now
              CROSS JOIN site AS s ON s.id = x.site
              WHERE x.exit = e.name
              ORDER BY k.blocked_until
              LIMIT 100))
FROM exit AS e
ORDER BY e.name

-- name: put_exits
-- Put exits into the book, or change what it says of them. How well they do is not touched.
INSERT INTO exit (name, address, pools, cap)
VALUES (?, ?, ?, ?)
ON CONFLICT (name) DO UPDATE SET address = excluded.address, pools = excluded.pools, cap = excluded.cap

-- name: remove_exits
-- Take exits out of the book.
DELETE FROM exit WHERE name IN (SELECT value FROM json_each(:names))

-- name: ban_exit
-- An exit is not used before `until`, by order of a person. A longer ban stays.
INSERT INTO exit (name, banned_until) VALUES (:name, :until)
ON CONFLICT (name) DO UPDATE SET banned_until = max(banned_until, excluded.banned_until)

-- name: release_exit
-- An exit may be used at once, as if it had never failed.
UPDATE exit SET failures = 0, quarantined_until = 0, banned_until = 0, probe = 0 WHERE name = :name

-- name: ban_slot
-- An exit is not used at one site before `until`. A longer block stays.
INSERT INTO slot (site, exit, blocked_until) VALUES (:site, :exit, :until)
ON CONFLICT (site, exit) DO UPDATE SET blocked_until = max(blocked_until, excluded.blocked_until)

-- name: note_ban
-- A blocked slot is found through its limit: make one, if there is none.
INSERT INTO slot_limit (site, exit) VALUES (:site, :exit) ON CONFLICT (site, exit) DO NOTHING

-- name: find_bans
-- Sites where this exit is, or was, limited or banned.
SELECT json_group_array(x.site)
FROM slot_limit AS x CROSS JOIN site AS s ON s.id = x.site
WHERE x.exit = :exit AND (:site IS NULL OR s.key = :site)

-- name: free_slots_of
-- These sites may be visited by this exit as far as limits and bans are concerned.
UPDATE slot SET blocked_until = 0 WHERE exit = :exit AND site IN (SELECT value FROM json_each(:sites))

-- name: end_limits_of
-- No request needs to go first at these sites by this exit.
UPDATE slot_limit SET probing = 0, probe = 0 WHERE exit = :exit AND site IN (SELECT value FROM json_each(:sites))

-- name: open_limited_sites
-- These sites are not blocked over all their exits.
UPDATE site_limit SET blocked_until = 0 WHERE site IN (SELECT value FROM json_each(:sites))

-- name: find_site_number
-- The number of a site.
SELECT id FROM site WHERE key = :site

-- name: free_slots_at
-- The slots of this site that were limited or banned may be used, as far as that is concerned.
UPDATE slot SET blocked_until = 0
WHERE site = :site AND exit IN (SELECT x.exit FROM slot_limit AS x WHERE x.site = :site)

-- name: end_limits_at
-- No request needs to go first at this site.
UPDATE slot_limit SET probing = 0, probe = 0 WHERE site = :site

-- name: end_setbacks
-- Tasks of this site that wait because it limited them, or was down, wait no longer.
UPDATE task SET not_before = :now
WHERE site = :site AND state IN (1, 3) AND state = 1 AND not_before > :now AND instr(extra, '"set_back_since":') > 0
