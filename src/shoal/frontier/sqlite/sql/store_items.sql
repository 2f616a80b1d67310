INSERT INTO item (run, n, url, grouping, body) VALUES (?, ?, ?, ?, ?)
