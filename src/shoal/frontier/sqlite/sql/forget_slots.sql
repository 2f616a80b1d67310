-- Of a stretch of slots, those that say nothing since `before`. Limits are forgotten first, so there are none left then.
DELETE FROM slot
WHERE (site, exit) > (:site, :exit) AND (site, exit) <= (:last_site, :last_exit)
  AND live = 0 AND last_at < :before AND blocked_until + penalty * :quiet < :before
  AND begun_at + (SELECT max(s.delay, s.crawl_delay, s.pace) FROM site AS s WHERE s.id = slot.site) < :before
  AND NOT EXISTS (SELECT 1 FROM slot_limit AS x WHERE x.site = slot.site AND x.exit = slot.exit)
