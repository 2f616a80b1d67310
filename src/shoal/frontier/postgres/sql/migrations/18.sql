-- No table changes: settlements bring the `extra` of a dead letter, and no URL of a redirect.
SELECT 1;
