-- name: find_lines
-- The lines that a worker may draw from, and what is left in them; and what is to be heeded about exits.
SELECT json_array(
    json_group_array(json_array(id, scraper, lane, pool, auto_ack, held, waiting, leased)),
    (SELECT json_group_array(json_array(name, failures, quarantined_until, probe, cap, banned_until))
     FROM exit WHERE failures + quarantined_until + cap + banned_until > 0)
)
FROM line
WHERE waiting + leased > 0
  AND scraper IN (SELECT value FROM json_each(:scrapers))
  AND lane IN (SELECT value FROM json_each(:lanes))
  AND (:queues IS NULL OR queue IN (SELECT value FROM json_each(:queues)))

-- name: find_due_visits
-- The sites of one line that may be visited by `horizon`, longest due first, each with its rules and the slots it has.
-- Of clocks only what a claim looks at: what they were before, it sets itself.
SELECT json_group_array(json_array(
    v.site, v.ready, s.key, max(s.delay, s.crawl_delay, s.pace), s.site_delay, s.concurrency, s.lease, s.begun_at, s.limited,
    (SELECT json_group_array(json_array(
        k.begun_at, 0, 0, k.exit, k.blocked_until, k.live, k.penalty, k.last_at, max(s.delay, s.crawl_delay, s.pace)))
     FROM slot AS k WHERE k.site = v.site AND k.exit IN (SELECT value FROM json_each(:exits)))
))
FROM (SELECT site, ready FROM visit WHERE line = :line AND due_at <= :horizon ORDER BY due_at LIMIT :most) AS v
CROSS JOIN site AS s ON s.id = v.site

-- name: find_wake
-- When anything in these lines can next be due: a visit (of those in `visited`), or a task that waits for its time.
SELECT json_array(
    (SELECT min((SELECT due_at FROM visit WHERE line = j.value ORDER BY due_at LIMIT 1)) FROM json_each(:visited) AS j),
    (SELECT min((SELECT not_before FROM task WHERE state = 1 AND line = j.value ORDER BY not_before LIMIT 1))
     FROM json_each(:lines) AS j)
)

-- name: renew_leases
-- These leases run anew, for as long as their sites say; not those of cancelled runs.
UPDATE lease
SET expires_at = :now + (SELECT lease FROM site WHERE site.id = lease.site)
FROM json_each(:leases) AS j
WHERE lease.task = j.value ->> 0 AND lease.token = j.value ->> 1
  AND (SELECT state FROM run WHERE run.id = lease.run) != 'cancelled'

-- name: find_live_tokens
-- Those of these leases that still stand, and whose runs are not cancelled.
SELECT json_group_array(l.token)
FROM json_each(:leases) AS j
CROSS JOIN lease AS l ON l.task = j.value ->> 0 AND l.token = j.value ->> 1
CROSS JOIN run AS r ON r.id = l.run
WHERE r.state != 'cancelled'
