SELECT e.name, e.address, e.pools, e.cap, e.failures, max(e.quarantined_until, e.banned_until),
       (SELECT count(*) FROM lease AS l WHERE l.exit = e.name),
       (SELECT json_group_array(json_array(key, blocked_until))
        FROM (SELECT s.key, k.blocked_until
              FROM slot_limit AS x
              CROSS JOIN slot AS k ON k.site = x.site AND k.exit = x.exit AND k.blocked_until > :now
              CROSS JOIN site AS s ON s.id = x.site
              WHERE x.exit = e.name
              ORDER BY k.blocked_until
              LIMIT 100))
FROM exit AS e
ORDER BY e.name
