-- name: find_run
-- What does not change about a run, and its state.
SELECT json_array(id, scraper, queue, state, policy, is_job, move) FROM run WHERE run_id = :run_id

-- name: name_runs
-- The ids and states of runs by their numbers.
SELECT json_group_array(json_array(r.id, r.run_id, r.state)) FROM json_each(:runs) AS j CROSS JOIN run AS r ON r.id = j.value

-- name: finish_runs
-- A sealed run with nothing left is finished; its results are kept from now on for as long as its policy says.
UPDATE run
SET state = 'finished',
    ended_at = :now,
    results_until = :now + (policy ->> '$.results_ttl')
WHERE id IN (SELECT value FROM json_each(:runs))
  AND sealed AND state = 'running' AND waiting + leased = 0

-- name: count_line
-- Add to the counters of a line; numbers may be negative.
UPDATE line SET waiting = waiting + :waiting, leased = leased + :leased WHERE id = :line

-- name: schedule
-- Tasks became ready (or, with a negative number, are no longer). A visit that is there already keeps its time.
INSERT INTO visit (line, site, due_at, ready)
VALUES (?, ?, ?, ?)
ON CONFLICT (line, site) DO UPDATE SET ready = ready + excluded.ready

-- name: end_visits
-- Of these, the visits that have nothing to do.
DELETE FROM visit
WHERE ready <= 0 AND (line, site) IN (SELECT j.value ->> 0, j.value ->> 1 FROM json_each(:places) AS j)
