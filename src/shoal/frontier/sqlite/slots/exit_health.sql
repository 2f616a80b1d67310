-- name: count_leases_by_exit
-- How many leases go by each exit. There are never more leases than requests in flight: they are looked through.
SELECT json_group_object(exit, n) FROM (SELECT exit, count(*) AS n FROM lease GROUP BY exit)

-- name: find_health
-- How well these exits do, and those that are tried again by one of these leases.
SELECT json_group_array(json_array(name, failures, quarantined_until, probe))
FROM exit WHERE name IN (SELECT value FROM json_each(:names)) OR probe IN (SELECT value FROM json_each(:probes))

-- name: save_health
-- Write that down.
INSERT INTO exit (name, failures, quarantined_until, probe)
VALUES (?, ?, ?, ?)
ON CONFLICT (name) DO UPDATE SET
    failures = excluded.failures,
    quarantined_until = excluded.quarantined_until,
    probe = excluded.probe

-- name: set_probes
-- By which lease an exit is tried again.
UPDATE exit SET probe = j.column2 FROM (VALUES (?, ?)) AS j WHERE exit.name = j.column1
