SELECT json_array(id, scraper, queue, state, policy) FROM run WHERE run_id = :run_id
