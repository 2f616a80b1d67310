-- Jobs whose results have had their time. One that was cancelled waits until its last task has ended.
SELECT id FROM run WHERE results_until IS NOT NULL AND results_until <= :now AND is_job AND waiting + leased = 0 LIMIT :most
