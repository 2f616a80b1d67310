SELECT id FROM worker WHERE worker_id = :worker_id AND seen_at BETWEEN :now - 499 AND :now
