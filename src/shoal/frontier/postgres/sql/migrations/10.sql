-- No table changes: the sites of one queue can be read.
SELECT 1;
