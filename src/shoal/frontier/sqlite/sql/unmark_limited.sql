UPDATE site SET limited = 0
WHERE id IN (SELECT value FROM json_each(:sites))
  AND NOT EXISTS (SELECT 1 FROM slot_limit AS x WHERE x.site = site.id)
  AND NOT EXISTS (SELECT 1 FROM site_limit AS x WHERE x.site = site.id)
