-- Of two endings of one page, the last counts.
INSERT OR REPLACE INTO ending (run, name, state, ended_at, reason, url) VALUES (?, ?, ?, ?, ?, ?)
