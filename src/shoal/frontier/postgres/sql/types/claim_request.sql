-- What a worker wants. `pool` and `exit`: the exits that it has, pool by pool. `private`: the pools of which other workers
-- have other exits. `tokens`: one for each lease that it may get. `patient`: it has nothing to settle and found all due
-- sites locked: wait for those of the first line.
CREATE TYPE claim_request AS (
    scrapers text[],
    lanes text[],
    queues text[],
    pool text[],
    exit text[],
    private text[],
    want int,
    ahead bigint,
    tokens bigint[],
    patient boolean
);
