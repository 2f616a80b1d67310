-- A site with no tasks takes the rules of the run that comes; one with tasks keeps the strictest of both.
INSERT INTO site (key, delay, site_delay, concurrency, hard_timeout, lease, load)
SELECT j.value ->> 0, :delay, :site_delay, :concurrency, :hard_timeout, :lease, j.value ->> 1
FROM json_each(:sites) AS j
WHERE true
ON CONFLICT (key) DO UPDATE SET
    delay = CASE WHEN load = 0 THEN excluded.delay ELSE max(delay, excluded.delay) END,
    site_delay = CASE WHEN load = 0 THEN excluded.site_delay ELSE max(site_delay, excluded.site_delay) END,
    concurrency = CASE WHEN load = 0 THEN excluded.concurrency ELSE min(concurrency, excluded.concurrency) END,
    hard_timeout = CASE WHEN load = 0 THEN excluded.hard_timeout ELSE max(hard_timeout, excluded.hard_timeout) END,
    lease = CASE WHEN load = 0 THEN excluded.lease ELSE max(lease, excluded.lease) END,
    load = load + excluded.load
