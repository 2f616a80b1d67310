SELECT key FROM seen WHERE run = :run AND key > :after ORDER BY key LIMIT :most
