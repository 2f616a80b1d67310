-- name: find_pages
-- What is to be known of waiting or leased tasks in order to remember how they ended.
SELECT json_group_array(json_array(t.id, t.run, t.url, t.extra, t.expires_at))
FROM json_each(:tasks) AS j CROSS JOIN task AS t ON t.id = j.value

-- name: find_letters
-- The same of dead letters.
SELECT json_group_array(json_array(d.run, d.url, d.extra, d.reason, d.died_at))
FROM json_each(:tasks) AS j CROSS JOIN dead AS d ON d.task = j.value

-- name: store_endings
-- Remember how pages ended. Of two endings of one page, the last counts.
INSERT OR REPLACE INTO ending (run, name, state, ended_at, reason, url) VALUES (?, ?, ?, ?, ?, ?)

-- name: forget_endings
-- Forget how these pages ended. `names`: one behind the other, 8 bytes each.
DELETE FROM ending WHERE run = :run AND name IN (SELECT substr(:names, j.value, 8) FROM json_each(:starts) AS j)
