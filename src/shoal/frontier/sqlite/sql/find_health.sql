SELECT json_group_array(json_array(name, failures, quarantined_until, probe))
FROM exit WHERE name IN (SELECT value FROM json_each(:names)) OR probe IN (SELECT value FROM json_each(:probes))
