DELETE FROM site_limit
WHERE site IN (SELECT value FROM json_each(:sites)) AND blocked_until < :before
  AND NOT EXISTS (SELECT 1 FROM slot_limit AS x WHERE x.site = site_limit.site)
