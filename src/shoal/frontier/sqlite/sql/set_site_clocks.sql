UPDATE site
SET next_at = j.value ->> 1, crawl_delay = coalesce(j.value ->> 2, crawl_delay)
FROM json_each(:sites) AS j
WHERE site.id = j.value ->> 0
