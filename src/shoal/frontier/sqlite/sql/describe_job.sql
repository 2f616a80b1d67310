INSERT INTO job (run, owner, key, fingerprint, groups, error, callback)
VALUES (:run, :owner, :key, :fingerprint, :groups, :error, :callback)
