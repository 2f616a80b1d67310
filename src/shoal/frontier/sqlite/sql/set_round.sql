INSERT INTO seen_round (id, sorted, until) VALUES (1, :sorted, :until)
ON CONFLICT (id) DO UPDATE SET sorted = excluded.sorted, until = excluded.until
