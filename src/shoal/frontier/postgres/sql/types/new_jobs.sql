-- Jobs, each at its position in every list. `kind`: the position of its kind in `run_kinds`. `busy`: it has tasks. `most`,
-- `window`: its quota. `groups`: JSON array.
CREATE TYPE new_jobs AS (
    kind int[],
    run_id text[],
    input bytea[],
    busy boolean[],
    owner text[],
    key text[],
    fingerprint bytea[],
    most bigint[],
    "window" bigint[],
    groups text[],
    error text[],
    callback bytea[]
);
