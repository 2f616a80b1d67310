UPDATE run
SET state = 'cancelled', ended_at = :now, results_until = :now + (policy ->> '$.results_ttl')
WHERE id = :run
