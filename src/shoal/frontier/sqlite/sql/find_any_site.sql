-- The number of a site, any: where one may begin to look around.
SELECT abs(random()) % (coalesce(max(site), 0) + 1) FROM slot
