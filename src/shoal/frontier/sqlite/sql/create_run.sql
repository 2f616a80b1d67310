INSERT INTO run (run_id, scraper, mode, state, queue, policy, input, created_at)
VALUES (:run_id, :scraper, :mode, 'open', :queue, :policy, :input, :now)
ON CONFLICT (run_id) DO NOTHING
