UPDATE lease
SET expires_at = :now + (SELECT lease FROM site WHERE site.id = lease.site)
FROM json_each(:leases) AS j
WHERE lease.task = j.value ->> 0 AND lease.token = j.value ->> 1
  AND (SELECT state FROM run WHERE run.id = lease.run) != 'cancelled'
