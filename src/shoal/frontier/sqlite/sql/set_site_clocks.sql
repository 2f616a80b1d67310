UPDATE site
SET begun_at = j.value ->> 1, begun_before = j.value ->> 2, crawl_delay = j.value ->> 3
FROM json_each(:sites) AS j
WHERE site.id = j.value ->> 0
