DELETE FROM note WHERE id IN (SELECT id FROM note WHERE stream = :stream LIMIT :most)
