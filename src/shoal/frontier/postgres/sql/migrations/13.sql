-- No table changes: one of many can hold an entry of the cache, and let go of it.
SELECT 1;
