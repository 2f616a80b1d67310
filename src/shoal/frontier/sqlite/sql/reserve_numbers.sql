UPDATE sqlite_sequence SET seq = :last WHERE name = 'task'
