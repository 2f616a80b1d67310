-- Settlements, each at its position in every list. Lists may end early where nothing but nulls would follow: no wait, no
-- penalty, nothing to count.
-- `kind`: 0 done, 1 retry, 2 snooze, 3 dead, 4 drop. `wait`: of a dead letter, how many attempts it is charged with.
-- `url`: where items come from. `reason`: of a dead letter or of a drop. `cause`: what a rate limit said. `aside`: how long a
-- snoozed task waits itself. `extra`: what a snoozed task, or a dead letter, has from now on. `n`, `body`: how many items, and
-- their JSON array.
CREATE TYPE settlements AS (
    run_id text[],
    task bigint[],
    token bigint[],
    kind smallint[],
    started bigint[],
    wait bigint[],
    penalty int[],
    requests int[],
    received bigint[],
    refused int[],
    duplicates int[],
    crawl_delay bigint[],
    url text[],
    reason text[],
    group_name text[],
    n int[],
    body bytea[],
    pace bigint[],
    cause text[],
    aside bigint[],
    extra text[]
);
