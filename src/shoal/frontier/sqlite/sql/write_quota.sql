INSERT INTO quota (owner, resets_at, used) VALUES (:owner, :resets_at, :used)
ON CONFLICT (owner) DO UPDATE SET resets_at = excluded.resets_at, used = excluded.used
