INSERT INTO run (run_id, scraper, mode, state, queue, policy, input, created_at, sealed, is_job)
VALUES (:run_id, :scraper, :mode, 'running', :queue, :policy, :input, :now, 1, 1)
RETURNING id
