-- The lines that a worker may draw from, and what is left in them; and what is to be heeded about exits.
SELECT json_array(
    json_group_array(json_array(id, scraper, lane, pool, auto_ack, held, waiting, leased)),
    (SELECT json_group_array(json_array(name, failures, quarantined_until, probe, cap, banned_until))
     FROM exit WHERE failures + quarantined_until + cap + banned_until > 0)
)
FROM line
WHERE waiting + leased > 0
  AND scraper IN (SELECT value FROM json_each(:scrapers))
  AND lane IN (SELECT value FROM json_each(:lanes))
  AND (:queues IS NULL OR queue IN (SELECT value FROM json_each(:queues)))
