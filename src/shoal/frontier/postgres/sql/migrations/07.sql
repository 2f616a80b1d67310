-- Jobs of the gateway, and records.
ALTER TABLE run ADD COLUMN is_job boolean NOT NULL DEFAULT false;
CREATE INDEX run_waits ON run (queue, id) WHERE is_job AND ended_at IS NULL;
CREATE INDEX run_ended ON run (ended_at, queue) WHERE is_job AND ended_at IS NOT NULL;
ALTER TABLE task ADD COLUMN part text;
CREATE INDEX task_part ON task (run, part) WHERE part IS NOT NULL;
CREATE TABLE job (
    run int PRIMARY KEY,
    gone_at bigint,
    owner text NOT NULL,
    key text,
    fingerprint bytea NOT NULL,
    groups text NOT NULL,
    error text,
    callback bytea
);
CREATE UNIQUE INDEX job_key ON job (owner, key) WHERE key IS NOT NULL;
CREATE INDEX job_owner ON job (owner, run);
CREATE INDEX job_callback ON job (run) WHERE callback IS NOT NULL;
CREATE INDEX job_gone ON job (gone_at) WHERE gone_at IS NOT NULL;
CREATE TABLE quota (
    owner text PRIMARY KEY,
    resets_at bigint NOT NULL,
    used bigint NOT NULL
) WITH (fillfactor = 50);
CREATE TABLE record (
    kind text NOT NULL,
    name text NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (kind, name)
);
