DELETE FROM seen_lately WHERE id <= :until
