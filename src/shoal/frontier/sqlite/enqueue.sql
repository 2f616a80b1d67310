-- name: find_line
-- The line of a queue where tasks of this scraper, lane and pool wait.
SELECT id FROM line WHERE queue = :queue AND scraper = :scraper AND lane = :lane AND pool = :pool

-- name: open_line
-- Make that line.
INSERT INTO line (queue, scraper, lane, pool, auto_ack, held)
VALUES (:queue, :scraper, :lane, :pool, :auto_ack, :held)
RETURNING id

-- name: find_sites
-- Those of these sites that are known, with their rules, and whether any of their tasks has not ended.
SELECT json_group_array(json_array(
    s.key, s.id,
    EXISTS (SELECT 1 FROM visit AS v WHERE v.site = s.id)
    OR EXISTS (SELECT 1 FROM slot AS k WHERE k.site = s.id AND k.live > 0)
    OR EXISTS (SELECT 1 FROM task AS t WHERE t.state IN (1, 3) AND t.site = s.id),
    s.delay, s.site_delay, s.concurrency, s.hard_timeout, s.lease, s.limit_exits, s.limit_window
))
FROM json_each(:sites) AS j
CROSS JOIN site AS s ON s.key = j.value

-- name: open_sites
-- Write down the rules of sites, new ones and known ones.
INSERT INTO site (key, delay, site_delay, concurrency, hard_timeout, lease, limit_exits, limit_window)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (key) DO UPDATE SET
    delay = excluded.delay,
    site_delay = excluded.site_delay,
    concurrency = excluded.concurrency,
    hard_timeout = excluded.hard_timeout,
    lease = excluded.lease,
    limit_exits = excluded.limit_exits,
    limit_window = excluded.limit_window

-- name: contest_sites
-- Runs with different rules have met at these sites.
INSERT INTO contested_site (site) SELECT value FROM json_each(:sites) WHERE true ON CONFLICT (site) DO NOTHING

-- name: know_sites
-- Make these sites known. Those that are known keep their rules.
INSERT INTO site (key, delay, site_delay, concurrency, hard_timeout, lease, limit_exits, limit_window)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (key) DO NOTHING

-- name: number_sites
-- The numbers of sites that are known.
SELECT json_group_array(json_array(s.key, s.id)) FROM json_each(:sites) AS j CROSS JOIN site AS s ON s.key = j.value

-- name: insert_tasks
-- Put tasks in line, or aside until their time has come.
INSERT INTO task (run, line, site, state, priority, depth, not_before, expires_at, url, handler, extra, part)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
