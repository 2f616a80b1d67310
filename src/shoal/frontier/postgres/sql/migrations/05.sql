-- Rate limits of slots and of whole sites with the one request that goes first afterwards; the pace of sites that suffer; how
-- well exits do; notes.
ALTER TABLE run ADD COLUMN limit_exits int NOT NULL DEFAULT 3;
ALTER TABLE run ADD COLUMN limit_window bigint NOT NULL DEFAULT 60000;
UPDATE run
SET limit_exits = coalesce((policy::json ->> 'limit_exits')::int, 3),
    limit_window = coalesce((policy::json ->> 'limit_window')::bigint, 60000);
ALTER TABLE run ALTER COLUMN limit_exits DROP DEFAULT, ALTER COLUMN limit_window DROP DEFAULT;
ALTER TABLE site ADD COLUMN pace bigint NOT NULL DEFAULT 0;
ALTER TABLE site ADD COLUMN limit_window bigint NOT NULL DEFAULT 60000;
ALTER TABLE site ADD COLUMN limit_exits int NOT NULL DEFAULT 3;
ALTER TABLE site ADD COLUMN probing boolean NOT NULL DEFAULT false;
ALTER TABLE site ADD COLUMN probe bigint NOT NULL DEFAULT 0;
ALTER TABLE site ADD COLUMN blocked_until bigint NOT NULL DEFAULT 0;
ALTER TABLE site ADD COLUMN cause text;
ALTER TABLE site ALTER COLUMN limit_exits DROP DEFAULT, ALTER COLUMN limit_window DROP DEFAULT;
ALTER TABLE slot ADD COLUMN probing boolean NOT NULL DEFAULT false;
ALTER TABLE slot ADD COLUMN probe bigint NOT NULL DEFAULT 0;
ALTER TABLE slot ADD COLUMN limited_at bigint NOT NULL DEFAULT 0;
ALTER TABLE slot ADD COLUMN limited_until bigint NOT NULL DEFAULT 0;
ALTER TABLE slot ADD COLUMN cause text;
UPDATE slot SET limited_until = blocked_until, cause = '' WHERE penalty > 0;
CREATE INDEX slot_limited ON slot (exit) WHERE cause IS NOT NULL;
CREATE TABLE exit_book (
    name text COLLATE "C" PRIMARY KEY,
    cap int NOT NULL DEFAULT 0,
    failures int NOT NULL DEFAULT 0,
    quarantined_until bigint NOT NULL DEFAULT 0,
    probe bigint NOT NULL DEFAULT 0,
    address text NOT NULL DEFAULT '',
    pools text[] NOT NULL DEFAULT '{}'
) WITH (fillfactor = 50);
CREATE INDEX exit_heeded ON exit_book (name) WHERE failures > 0 OR quarantined_until > 0 OR cap > 0;
CREATE TABLE note (
    id bigint NOT NULL,
    expires_at bigint,
    stream text NOT NULL COLLATE "C",
    body bytea NOT NULL,
    PRIMARY KEY (stream, id)
);
CREATE INDEX note_expiry ON note (expires_at) WHERE expires_at IS NOT NULL;
