-- There are never more leases than requests in flight: they are looked through.
SELECT json_group_object(exit, n) FROM (SELECT exit, count(*) AS n FROM lease GROUP BY exit)
