-- Limits of slots that have been over for so long that nobody heeds them. Answers their sites.
DELETE FROM slot_limit
WHERE (site, exit) IN (
    SELECT x.site, x.exit
    FROM slot_limit AS x
    CROSS JOIN slot AS k ON k.site = x.site AND k.exit = x.exit
    WHERE x.limited_until < :before AND k.blocked_until < :before AND k.live = 0
    ORDER BY x.limited_until
    LIMIT :most)
RETURNING site
