INSERT INTO record (kind, name, body) VALUES (:kind, :name, :body)
ON CONFLICT (kind, name) DO UPDATE SET body = excluded.body
