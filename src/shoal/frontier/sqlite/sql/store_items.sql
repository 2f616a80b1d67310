-- `bodies` holds all the JSON arrays one behind the other; each row says where its own begins and how long it is.
INSERT INTO item (run, n, url, grouping, body)
SELECT j.value ->> 0, j.value ->> 1, j.value ->> 2, j.value ->> 3, substr(:bodies, 1 + (j.value ->> 4), j.value ->> 5)
FROM json_each(:rows) AS j
