-- No table changes: sites are released as a whole, jobs have a deadline, results are bounded in bytes, settlements bring
-- the `extra` of a dead letter and no URL of a redirect.
SELECT 1;
