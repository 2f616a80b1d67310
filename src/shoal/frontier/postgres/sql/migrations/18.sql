-- No table changes: results are bounded in bytes.
SELECT 1;
