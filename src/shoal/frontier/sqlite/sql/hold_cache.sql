INSERT INTO cache (key, value, expires_at) VALUES (:key, :value, :until)
ON CONFLICT (key) DO UPDATE SET value = excluded.value, expires_at = excluded.expires_at
WHERE cache.expires_at <= :now OR cache.value = excluded.value
RETURNING 1
