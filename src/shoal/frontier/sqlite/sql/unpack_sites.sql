-- Clocks only ever go forward.
UPDATE site
SET begun_at = max(begun_at, j.value ->> 1), begun_before = max(begun_before, j.value ->> 1),
    crawl_delay = max(crawl_delay, j.value ->> 2)
FROM json_each(:sites) AS j
WHERE site.id = j.value ->> 0
