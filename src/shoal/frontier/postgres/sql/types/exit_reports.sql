-- What settlements tell about exits: the position of the settlement, the exit, and whether it works; else it has failed.
CREATE TYPE exit_reports AS (
    settlement int[],
    exit text[],
    works boolean[]
);
