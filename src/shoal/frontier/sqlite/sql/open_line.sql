INSERT INTO line (queue, scraper, lane, pool, auto_ack, held)
VALUES (:queue, :scraper, :lane, :pool, :auto_ack, :held)
RETURNING id
