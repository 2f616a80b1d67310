INSERT INTO slot_limit (site, exit) VALUES (:site, :exit) ON CONFLICT (site, exit) DO NOTHING
