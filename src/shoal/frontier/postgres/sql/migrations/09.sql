-- No table changes: tasks may have a pool of their own, and the functions, which are all made anew, know of it.
SELECT 1;
