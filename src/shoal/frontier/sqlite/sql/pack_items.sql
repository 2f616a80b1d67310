SELECT id, n, url, grouping, body FROM item WHERE run = :run AND id > :after ORDER BY id LIMIT :most
