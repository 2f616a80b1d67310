SELECT value FROM cache WHERE key = :key AND expires_at > :now
