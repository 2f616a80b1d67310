DELETE FROM worker WHERE seen_at < :now - 3600000 AND NOT EXISTS (SELECT 1 FROM lease WHERE worker = worker.id)
