DELETE FROM cache WHERE key = :key AND value = :value
