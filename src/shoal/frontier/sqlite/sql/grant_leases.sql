INSERT INTO lease (task, token, worker, run, line, site, exit, expires_at, auto_ack)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
