UPDATE exit SET banned_until = 0 WHERE banned_until BETWEEN 1 AND :now
