-- The sites of one line that may be visited by `horizon`, longest due first, each with its rules and the slots it has.
-- Of clocks only what a claim looks at: what they were before, it sets itself.
SELECT json_group_array(json_array(
    v.site, v.ready, s.key, max(s.delay, s.crawl_delay, s.pace), s.site_delay, s.concurrency, s.lease, s.begun_at, s.limited,
    (SELECT json_group_array(json_array(
        k.begun_at, 0, 0, k.exit, k.blocked_until, k.live, k.penalty, k.last_at, max(s.delay, s.crawl_delay, s.pace)))
     FROM slot AS k WHERE k.site = v.site AND k.exit IN (SELECT value FROM json_each(:exits)))
))
FROM (SELECT site, ready FROM visit WHERE line = :line AND due_at <= :horizon ORDER BY due_at LIMIT :most) AS v
CROSS JOIN site AS s ON s.id = v.site
