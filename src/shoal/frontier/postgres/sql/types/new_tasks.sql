-- New tasks, each at its position in every list; those lists that may hold nulls may end early. `key`: as `mark_seen` reads
-- it. `lane`: as `lane_and_pool` reads it. `wait`, `ttl`: from now on.
CREATE TYPE new_tasks AS (
    url text[],
    site text[],
    key bytea[],
    lane text[],
    handler text[],
    priority int[],
    depth int[],
    wait bigint[],
    ttl bigint[],
    extra text[]
);
