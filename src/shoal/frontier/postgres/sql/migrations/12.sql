-- No table changes: sweeps forget slots that say nothing any more.
SELECT 1;
