-- Leases that ran out, and leases of workers known to be gone; bounded.
SELECT json_group_array(json_array(
    l.task, l.run, l.line, l.site, l.exit, l.auto_ack, l.expires_at, l.worker, r.state = 'cancelled',
    coalesce(r.policy ->> '$.crashes', 3), t.crashes,
    max(s.delay, s.crawl_delay), s.hard_timeout, k.begun_at, k.begun_before, k.blocked_until, k.penalty
))
FROM (
    SELECT task FROM lease WHERE :gone != '[]' AND worker IN (SELECT value FROM json_each(:gone))
    UNION
    SELECT task FROM (SELECT task FROM lease WHERE expires_at <= :now ORDER BY expires_at LIMIT :most)
    LIMIT :most
) AS lost
CROSS JOIN lease AS l ON l.task = lost.task
CROSS JOIN site AS s ON s.id = l.site
CROSS JOIN slot AS k ON k.site = l.site AND k.exit = l.exit
CROSS JOIN run AS r ON r.id = l.run
LEFT JOIN task AS t ON t.id = l.task
