INSERT OR IGNORE INTO seen (run, key) VALUES (?, ?)
