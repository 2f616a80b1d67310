-- A sealed run with nothing left is finished; its results are kept from now on for as long as its policy says.
UPDATE run
SET state = 'finished',
    ended_at = :now,
    results_until = :now + (policy ->> '$.results_ttl')
WHERE id IN (SELECT value FROM json_each(:runs))
  AND sealed AND state = 'running' AND waiting + leased = 0
