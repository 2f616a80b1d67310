INSERT INTO cache (key, value, expires_at) VALUES (:key, :value, :expires_at)
ON CONFLICT (key) DO UPDATE SET value = excluded.value, expires_at = excluded.expires_at
