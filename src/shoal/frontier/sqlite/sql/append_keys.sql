INSERT INTO seen_lately (run, keys) VALUES (:run, :keys)
