SELECT name, state, ended_at, reason, url FROM ending WHERE run = :run AND name > :after ORDER BY name LIMIT :most
