INSERT INTO sqlite_sequence (name, seq) VALUES ('task', :last)
