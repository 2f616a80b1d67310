-- Notes, and for how long each is kept.
CREATE TYPE new_notes AS (
    stream text[],
    body bytea[],
    ttl bigint[]
);
