SELECT count(*) FROM lease WHERE run = :run
