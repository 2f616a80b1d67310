-- name: read_cache
-- The values under these keys whose time is not over.
SELECT key, value FROM cache WHERE key IN (SELECT value FROM json_each(:keys)) AND expires_at > :now

-- name: write_cache
-- Put values under their keys, whatever was there.
INSERT INTO cache (key, value, expires_at) VALUES (?, ?, ?)
ON CONFLICT (key) DO UPDATE SET value = excluded.value, expires_at = excluded.expires_at

-- name: hold_cache
-- Put a value under a key where nothing else is, or the same. Answers a row if that was so.
INSERT INTO cache (key, value, expires_at) VALUES (:key, :value, :until)
ON CONFLICT (key) DO UPDATE SET value = excluded.value, expires_at = excluded.expires_at
WHERE cache.expires_at <= :now OR cache.value = excluded.value
RETURNING 1

-- name: let_go
-- Take a value away, if it is still the one under its key.
DELETE FROM cache WHERE key = :key AND value = :value
