UPDATE run SET results_until = NULL
WHERE results_until <= :now AND NOT is_job AND NOT EXISTS (SELECT 1 FROM item WHERE item.run = run.id)
