-- How pages ended that were not done.
CREATE TABLE ending (
    ended_at bigint NOT NULL,
    run int NOT NULL,
    name bytea NOT NULL,
    state text NOT NULL,
    reason text,
    url text
);
CREATE INDEX ending_name ON ending (run, name);
