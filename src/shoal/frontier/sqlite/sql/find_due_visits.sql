-- The sites of one line that may be visited by `horizon`, longest due first, each with its rules and the slots it has.
SELECT json_group_array(json_array(
    v.site, v.ready, s.key, max(s.delay, s.crawl_delay), s.site_delay, s.concurrency, s.lease, s.begun_at,
    (SELECT json_group_object(k.exit, json_array(k.begun_at, k.blocked_until, k.live, k.last_at, k.penalty))
     FROM json_each(:exits) AS e
     CROSS JOIN slot AS k ON k.site = v.site AND k.exit = e.value)
))
FROM (SELECT site, ready FROM visit WHERE line = :line AND due_at <= :horizon ORDER BY due_at LIMIT :most) AS v
CROSS JOIN site AS s ON s.id = v.site
