-- The leases of these tasks, with the clocks that their ends will move; and the leases by exits that are tried again.
SELECT json_array(json_group_array(json_array(
    l.task, l.token, l.run, l.line, l.site, l.auto_ack, s.delay, s.site_delay, s.crawl_delay, s.pace, s.limited,
    json_array(k.begun_at, k.begun_before, k.last_token, k.exit, k.blocked_until, k.live, k.penalty, k.last_at),
    iif(s.site_delay, json_array(s.begun_at, s.begun_before, s.last_token), NULL)
)), (SELECT json_group_array(probe) FROM exit WHERE probe > 0))
FROM json_each(:tasks) AS j
CROSS JOIN lease AS l ON l.task = j.value
CROSS JOIN site AS s ON s.id = l.site
CROSS JOIN slot AS k ON k.site = l.site AND k.exit = l.exit
