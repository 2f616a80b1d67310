INSERT INTO note (stream, expires_at, body) VALUES (?, ?, ?)
