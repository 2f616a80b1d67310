SELECT json_array(id, scraper, queue, state, policy, is_job, move) FROM run WHERE run_id = :run_id
