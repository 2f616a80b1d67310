DELETE FROM cache WHERE key IN (SELECT key FROM cache WHERE expires_at <= :now LIMIT :most)
