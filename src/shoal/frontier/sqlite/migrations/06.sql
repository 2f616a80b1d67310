ALTER TABLE site ADD COLUMN limit_exits INTEGER NOT NULL DEFAULT 3;
ALTER TABLE site ADD COLUMN limit_window INTEGER NOT NULL DEFAULT 60000;
ALTER TABLE site ADD COLUMN pace INTEGER NOT NULL DEFAULT 0;
ALTER TABLE site ADD COLUMN limited INTEGER NOT NULL DEFAULT 0;
CREATE TABLE slot_limit (
    site INTEGER NOT NULL,
    exit TEXT NOT NULL,
    limited_at INTEGER NOT NULL DEFAULT 0,
    limited_until INTEGER NOT NULL DEFAULT 0,
    probing INTEGER NOT NULL DEFAULT 0,
    probe INTEGER NOT NULL DEFAULT 0,
    cause TEXT,
    PRIMARY KEY (site, exit)
) WITHOUT ROWID;
CREATE INDEX slot_limit_exit ON slot_limit (exit);
CREATE TABLE site_limit (
    site INTEGER PRIMARY KEY,
    blocked_until INTEGER NOT NULL,
    probing INTEGER NOT NULL,
    probe INTEGER NOT NULL,
    cause TEXT
);
CREATE TABLE exit (
    name TEXT PRIMARY KEY,
    address TEXT NOT NULL DEFAULT '',
    pools TEXT NOT NULL DEFAULT '[]',
    cap INTEGER NOT NULL DEFAULT 0,
    failures INTEGER NOT NULL DEFAULT 0,
    quarantined_until INTEGER NOT NULL DEFAULT 0,
    probe INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX exit_heeded ON exit (name) WHERE failures + quarantined_until + cap > 0;
CREATE INDEX exit_probed ON exit (probe) WHERE probe > 0;
CREATE TABLE note (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    stream TEXT NOT NULL,
    expires_at INTEGER,
    body BLOB NOT NULL
);
CREATE INDEX note_stream ON note (stream, id);
CREATE INDEX note_expiry ON note (expires_at) WHERE expires_at IS NOT NULL;
