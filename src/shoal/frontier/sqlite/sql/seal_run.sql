UPDATE run SET sealed = 1, state = CASE WHEN state = 'open' THEN 'running' ELSE state END WHERE id = :run
