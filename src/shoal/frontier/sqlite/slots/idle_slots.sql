-- name: find_any_site
-- The number of a site, any: where one may begin to look around.
SELECT abs(random()) % (coalesce(max(site), 0) + 1) FROM slot

-- name: find_stretch
-- The last of so many slots behind this one; none, if there are fewer.
SELECT site, exit FROM slot WHERE (site, exit) > (:site, :exit) ORDER BY site, exit LIMIT 1 OFFSET :most - 1

-- name: forget_slots
-- Of a stretch of slots, those that say nothing since `before`. Limits are forgotten first, so there are none left then.
DELETE FROM slot
WHERE (site, exit) > (:site, :exit) AND (site, exit) <= (:last_site, :last_exit)
  AND live = 0 AND last_at < :before AND blocked_until + penalty * {{QUIET}} < :before
  AND begun_at + (SELECT max(s.delay, s.crawl_delay, s.pace) FROM site AS s WHERE s.id = slot.site) < :before
  AND NOT EXISTS (SELECT 1 FROM slot_limit AS x WHERE x.site = slot.site AND x.exit = slot.exit)
