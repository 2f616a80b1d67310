-- The last of so many slots behind this one; none, if there are fewer.
SELECT site, exit FROM slot WHERE (site, exit) > (:site, :exit) ORDER BY site, exit LIMIT 1 OFFSET :most - 1
