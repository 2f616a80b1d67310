UPDATE run SET state = 'running', ended_at = NULL, results_until = NULL WHERE id = :run AND state = 'finished'
