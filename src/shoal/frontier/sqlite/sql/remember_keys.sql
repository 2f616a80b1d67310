INSERT OR IGNORE INTO seen (run, key) SELECT :run, substr(:keys, 1 + 32 * j.value, 32) FROM json_each(:indices) AS j
