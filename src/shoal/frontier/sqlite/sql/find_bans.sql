-- Sites where this exit is, or was, limited or banned.
SELECT json_group_array(x.site)
FROM slot_limit AS x CROSS JOIN site AS s ON s.id = x.site
WHERE x.exit = :exit AND (:site IS NULL OR s.key = :site)
