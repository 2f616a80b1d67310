UPDATE run SET move = :move WHERE id = :run
