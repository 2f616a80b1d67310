UPDATE run SET state = 'paused' WHERE id = :run
