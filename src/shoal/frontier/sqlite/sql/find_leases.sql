-- The leases that still stand behind these settlements, with the clocks they will move.
SELECT json_group_array(json_array(
    j.key, l.run, l.line, l.site, l.exit, l.auto_ack, r.state = 'cancelled',
    json_array(s.delay, s.site_delay, s.crawl_delay, s.last_token, s.begun_at, s.begun_before,
               k.last_token, k.begun_at, k.begun_before, k.blocked_until, k.penalty)
))
FROM json_each(:leases) AS j
CROSS JOIN lease AS l ON l.task = j.value ->> 0 AND l.token = j.value ->> 1
CROSS JOIN site AS s ON s.id = l.site
CROSS JOIN slot AS k ON k.site = l.site AND k.exit = l.exit
CROSS JOIN run AS r ON r.id = l.run AND r.run_id = j.value ->> 2
