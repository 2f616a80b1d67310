DELETE FROM worker WHERE seen_at < :now - 3600000 AND id NOT IN (SELECT worker FROM lease)
