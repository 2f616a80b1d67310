-- A run as it is made: its policy as JSON, and apart from that what the frontier needs of it.
CREATE TYPE run_fields AS (
    run_id text,
    scraper text,
    mode text,
    queue text,
    policy text,
    input bytea,
    delay bigint,
    site_delay bigint,
    concurrency int,
    pool text,
    lease bigint,
    hard_timeout bigint,
    limit_exits int,
    limit_window bigint,
    crashes int,
    results_ttl bigint,
    lanes text
);
