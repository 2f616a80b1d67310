-- Leases that ran out, and leases of workers known to be gone; bounded. There are never more leases than requests in
-- flight: they are looked through.
SELECT json_group_array(json_array(
    l.task, l.run, l.line, l.site, l.auto_ack, l.expires_at, l.worker, l.token, s.limited, r.state = 'cancelled',
    coalesce(r.policy ->> '$.crashes', 3), t.crashes, max(s.delay, s.crawl_delay, s.pace), s.hard_timeout,
    json_array(k.begun_at, k.begun_before, k.last_token, k.exit, k.blocked_until, k.live, k.penalty, k.last_at)
))
FROM (
    SELECT * FROM lease WHERE expires_at <= :now OR worker IN (SELECT value FROM json_each(:gone)) LIMIT :most
) AS l
CROSS JOIN site AS s ON s.id = l.site
CROSS JOIN slot AS k ON k.site = l.site AND k.exit = l.exit
CROSS JOIN run AS r ON r.id = l.run
LEFT JOIN task AS t ON t.id = l.task
