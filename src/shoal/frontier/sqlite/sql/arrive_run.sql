INSERT INTO run (run_id, scraper, mode, state, queue, policy, input, sealed, created_at, move)
VALUES (:run_id, :scraper, :mode, 'paused', :queue, :policy, :input, :sealed, :created_at, :move)
ON CONFLICT (run_id) DO NOTHING
