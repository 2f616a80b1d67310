-- Sites whose clocks may still matter, with their slots.
SELECT s.id, s.key, s.crawl_delay, s.begun_at,
       (SELECT json_group_array(json_array(k.exit, k.begun_at, k.blocked_until, k.penalty, k.last_at))
        FROM slot AS k WHERE k.site = s.id)
FROM site AS s
WHERE s.id > :after
  AND (s.crawl_delay > 0 OR s.begun_at > :since
       OR EXISTS (SELECT 1 FROM slot AS k
                  WHERE k.site = s.id AND (k.penalty > 0 OR k.begun_at > :since OR k.blocked_until > :since)))
ORDER BY s.id
LIMIT :most
