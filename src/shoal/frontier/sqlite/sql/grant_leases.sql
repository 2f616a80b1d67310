INSERT INTO lease (task, token, worker, run, line, site, exit, claimed_at, expires_at, auto_ack)
SELECT j.value ->> 0, j.value ->> 1, :worker, j.value ->> 2, :line, j.value ->> 3, j.value ->> 4,
       :now, j.value ->> 5, :auto_ack
FROM json_each(:leases) AS j
