SELECT key, value FROM cache WHERE key IN (SELECT value FROM json_each(:keys)) AND expires_at > :now
