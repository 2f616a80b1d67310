-- The rules that a site begins with.
CREATE TYPE site_rules AS (
    delay bigint,
    site_delay bigint,
    concurrency int,
    hard_timeout bigint,
    lease bigint,
    limit_exits int,
    limit_window bigint
);
