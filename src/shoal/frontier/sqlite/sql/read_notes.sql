SELECT id, body FROM note
WHERE stream = :stream AND id > :cursor AND (expires_at IS NULL OR expires_at > :now)
ORDER BY id
LIMIT :limit
