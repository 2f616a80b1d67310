-- Tasks became ready (or, with a negative number, are no longer). A visit that is there already keeps its time.
INSERT INTO visit (line, site, due_at, ready)
VALUES (?, ?, ?, ?)
ON CONFLICT (line, site) DO UPDATE SET ready = ready + excluded.ready
