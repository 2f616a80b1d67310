UPDATE run SET state = :state WHERE id = :run
