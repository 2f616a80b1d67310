-- name: find_job_of_id
-- The job or other run of this id, with what tells whether the same is asked for again.
SELECT r.run_id, r.id, r.queue, r.ended_at, coalesce(b.fingerprint, x'')
FROM run AS r LEFT JOIN job AS b ON b.run = r.id
WHERE r.run_id = :run_id

-- name: find_job_of_key
-- The same, by the key that its owner gave it.
SELECT r.run_id, r.id, r.queue, r.ended_at, b.fingerprint
FROM job AS b CROSS JOIN run AS r ON r.id = b.run
WHERE b.owner = :owner AND b.key = :key

-- name: count_unfinished
-- The jobs of a queue that have not ended, up to one of them.
SELECT count(*) FROM run WHERE is_job AND ended_at IS NULL AND queue = :queue AND id <= :up_to

-- name: read_quota
-- What an owner has used of the quota that begins anew at `resets_at`.
SELECT used FROM quota WHERE owner = :owner AND resets_at = :resets_at

-- name: write_quota
-- Write that down; there is one quota for each owner.
INSERT INTO quota (owner, resets_at, used) VALUES (:owner, :resets_at, :used)
ON CONFLICT (owner) DO UPDATE SET resets_at = excluded.resets_at, used = excluded.used

-- name: create_job
-- Make a run that is a job: sealed from the first moment. Answers its number.
INSERT INTO run (run_id, scraper, mode, state, queue, policy, input, created_at, sealed, is_job)
VALUES (:run_id, :scraper, :mode, 'running', :queue, :policy, :input, :now, 1, 1)
RETURNING id

-- name: describe_job
-- What a run has besides if it is a job.
INSERT INTO job (run, owner, key, fingerprint, groups, error, callback)
VALUES (:run, :owner, :key, :fingerprint, :groups, :error, :callback)

-- name: read_jobs
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

-- name: read_queue
-- The jobs of a queue that have not ended, in the order they came.
SELECT json_group_array(id)
FROM (SELECT id FROM run WHERE is_job AND ended_at IS NULL AND queue = :queue ORDER BY id)

-- name: find_newest_jobs
-- The ids of the newest jobs of all owners, before a number.
SELECT r.run_id
FROM job AS b CROSS JOIN run AS r ON r.id = b.run
WHERE b.run < :before
ORDER BY b.run DESC
LIMIT :limit

-- name: find_jobs_of_owner
-- The ids of the newest jobs of one owner, before a number.
SELECT r.run_id
FROM job AS b CROSS JOIN run AS r ON r.id = b.run
WHERE b.owner = :owner AND b.run < :before
ORDER BY b.run DESC
LIMIT :limit

-- name: read_results
-- The items of jobs whose results are still there, and not too large; a row without an item for one that has none.
SELECT r.run_id, i.url, i.grouping, i.body
FROM json_each(:ids) AS k
CROSS JOIN run AS r ON r.run_id = k.value AND r.is_job AND (r.results_until IS NULL OR r.results_until > :now)
LEFT JOIN item AS i ON i.run = r.id
WHERE (SELECT coalesce(sum(length(body)), 0) FROM item WHERE run = r.id) <= :bytes
ORDER BY k.key, i.id

-- name: read_backlogs
-- For each queue, how many jobs have not ended, and how many have since a moment.
SELECT queue, sum(unfinished), sum(ended)
FROM (
    SELECT queue, count(*) AS unfinished, 0 AS ended FROM run WHERE is_job AND ended_at IS NULL GROUP BY queue
    UNION ALL
    SELECT queue, 0, count(*) FROM run WHERE is_job AND ended_at IS NOT NULL AND ended_at > :since GROUP BY queue
)
GROUP BY queue

-- name: read_callbacks
-- Jobs that have ended and whose owners have not been told.
SELECT r.run_id, b.callback
FROM job AS b CROSS JOIN run AS r ON r.id = b.run AND r.ended_at IS NOT NULL
WHERE b.callback IS NOT NULL
ORDER BY b.run
LIMIT :limit

-- name: clear_callbacks
-- The owners of these jobs have been told.
UPDATE job SET callback = NULL
WHERE run IN (SELECT r.id FROM json_each(:ids) AS j CROSS JOIN run AS r ON r.run_id = j.value)

-- name: give_up_jobs
-- The first jobs of a queue that came before a moment and have not ended are told why they will be.
UPDATE job SET error = :reason
WHERE run IN (
    SELECT w.id FROM (
        SELECT r.id, r.created_at FROM run AS r WHERE r.is_job AND r.ended_at IS NULL AND r.queue = :queue
        ORDER BY r.id LIMIT :most
    ) AS w
    WHERE w.created_at <= :before)
RETURNING (SELECT r.run_id FROM run AS r WHERE r.id = job.run)

-- name: find_expired_jobs
-- Jobs whose results have had their time. One that was cancelled waits until its last task has ended.
SELECT id FROM run WHERE results_until IS NOT NULL AND results_until <= :now AND is_job AND waiting + leased = 0 LIMIT :most

-- name: end_results
-- There is nothing left to expire of these runs, and what was asked is forgotten.
UPDATE run SET results_until = NULL, input = NULL WHERE id IN (SELECT value FROM json_each(:runs))

-- name: mark_gone
-- The results of these jobs have gone; that there were such jobs is still known.
UPDATE job SET gone_at = :now, callback = NULL, error = NULL WHERE run IN (SELECT value FROM json_each(:runs))

-- name: find_forgotten_jobs
-- Jobs whose results have been gone for so long that they may be forgotten.
SELECT run FROM job WHERE gone_at IS NOT NULL AND gone_at <= :before LIMIT :most

-- name: forget_jobs
-- Forget that runs were jobs.
DELETE FROM job WHERE run IN (SELECT value FROM json_each(:runs))

-- name: read_records
-- All records of a kind.
SELECT name, body FROM record WHERE kind = :kind

-- name: write_record
-- Write a record, or write it anew.
INSERT INTO record (kind, name, body) VALUES (:kind, :name, :body)
ON CONFLICT (kind, name) DO UPDATE SET body = excluded.body

-- name: delete_record
-- Delete a record.
DELETE FROM record WHERE kind = :kind AND name = :name
