CREATE TABLE ending (
    run INTEGER NOT NULL,
    name BLOB NOT NULL,
    state TEXT NOT NULL,
    ended_at INTEGER NOT NULL,
    reason TEXT,
    url TEXT,
    PRIMARY KEY (run, name)
) WITHOUT ROWID
