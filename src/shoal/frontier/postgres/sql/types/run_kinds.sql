-- The kinds of runs among jobs that are submitted together; the fields as of `run_fields`.
CREATE TYPE run_kinds AS (
    scraper text[],
    mode text[],
    queue text[],
    policy text[],
    delay bigint[],
    site_delay bigint[],
    concurrency int[],
    pool text[],
    lease bigint[],
    hard_timeout bigint[],
    limit_exits int[],
    limit_window bigint[],
    crashes int[],
    results_ttl bigint[],
    lanes text[]
);
