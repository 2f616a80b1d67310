SELECT id FROM line WHERE queue = :queue AND scraper = :scraper AND lane = :lane AND pool = :pool
