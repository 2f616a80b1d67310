-- name: keep_notes
-- Append notes to their streams.
INSERT INTO note (stream, expires_at, body) VALUES (?, ?, ?)

-- name: forget_notes
-- Delete some notes of a stream.
DELETE FROM note WHERE id IN (SELECT id FROM note WHERE stream = :stream LIMIT :most)
