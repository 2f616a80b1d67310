-- What has come in of an arriving run; tasks also if they have expired since.
SELECT (SELECT count(*) FROM task WHERE run = r.id) + r.expired, (SELECT count(*) FROM dead WHERE run = r.id),
       (SELECT count(*) FROM item WHERE run = r.id), (SELECT count(*) FROM seen WHERE run = r.id)
FROM run AS r
WHERE r.id = :run
