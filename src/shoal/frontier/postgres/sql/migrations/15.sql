-- No table changes: the release of an exit opens the sites that wait as a whole.
SELECT 1;
