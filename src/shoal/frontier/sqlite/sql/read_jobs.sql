-- Jobs by id, unless their version is the one that is known. It counts the tasks that have ended, and the steps of a job's
-- life: queued, processing, paused, finished, cancelled, gone.
SELECT * FROM (
    SELECT r.run_id, r.id,
           8 * (r.done + r.dead + r.expired + r.dropped + r.cancelled) + CASE
               WHEN b.gone_at IS NOT NULL OR r.results_until <= :now THEN 5
               WHEN r.state = 'cancelled' THEN 4
               WHEN r.state = 'finished' THEN 3
               WHEN r.state = 'paused' THEN 2
               ELSE r.leased + r.requests > 0
           END AS version,
           r.scraper, b.owner, r.state, r.created_at, r.ended_at, r.results_until, r.queue, b.groups,
           (SELECT count(DISTINCT part) FROM task WHERE task.run = r.id AND part > ''), b.error,
           b.gone_at IS NOT NULL OR r.results_until <= :now,
           r.waiting, r.leased, r.done, r.dead, r.expired, r.dropped, r.cancelled, r.items, r.requests, r.received,
           r.retries, r.snoozes, r.crashes, r.duplicates, r.refused, r.late, r.saved_requests,
           r.saved_bytes, k.value AS known
    FROM json_each(:known) AS k
    CROSS JOIN run AS r ON r.run_id = k.key
    CROSS JOIN job AS b ON b.run = r.id
)
WHERE version != known
