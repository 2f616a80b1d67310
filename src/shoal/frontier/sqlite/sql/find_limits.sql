-- What is known about rate limits of these sites and their slots, and from when on one of slots is one of the site.
SELECT json_array(
    (SELECT json_group_array(json_array(x.site, x.exit, x.limited_at, x.limited_until, x.probing, x.probe, x.cause))
     FROM json_each(:sites) AS j CROSS JOIN slot_limit AS x ON x.site = j.value),
    (SELECT json_group_array(json_array(x.site, x.blocked_until, x.probing, x.probe, x.cause))
     FROM json_each(:sites) AS j CROSS JOIN site_limit AS x ON x.site = j.value),
    (SELECT json_group_array(json_array(s.id, s.limit_exits, s.limit_window))
     FROM json_each(:sites) AS j CROSS JOIN site AS s ON s.id = j.value)
)
