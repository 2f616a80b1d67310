-- Back to where it was: a run that was never sealed is still being seeded.
UPDATE run SET state = iif(sealed, 'running', 'open') WHERE id = :run
