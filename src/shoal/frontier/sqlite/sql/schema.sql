-- The store of one frontier. All moments are milliseconds since the epoch.
-- `task` holds only what has not ended; what ended lives on in the counters of its run, in `item` and in `dead`.

CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value NOT NULL
) WITHOUT ROWID;

CREATE TABLE run (
    id INTEGER PRIMARY KEY,
    run_id TEXT NOT NULL UNIQUE,
    scraper TEXT NOT NULL,
    mode TEXT NOT NULL,
    state TEXT NOT NULL,
    queue TEXT NOT NULL,
    policy TEXT NOT NULL,
    input BLOB,
    sealed INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL,
    ended_at INTEGER,
    results_until INTEGER,
    waiting INTEGER NOT NULL DEFAULT 0,
    leased INTEGER NOT NULL DEFAULT 0,
    done INTEGER NOT NULL DEFAULT 0,
    dead INTEGER NOT NULL DEFAULT 0,
    expired INTEGER NOT NULL DEFAULT 0,
    dropped INTEGER NOT NULL DEFAULT 0,
    cancelled INTEGER NOT NULL DEFAULT 0,
    items INTEGER NOT NULL DEFAULT 0,
    requests INTEGER NOT NULL DEFAULT 0,
    received INTEGER NOT NULL DEFAULT 0,
    retries INTEGER NOT NULL DEFAULT 0,
    snoozes INTEGER NOT NULL DEFAULT 0,
    crashes INTEGER NOT NULL DEFAULT 0,
    duplicates INTEGER NOT NULL DEFAULT 0,
    refused INTEGER NOT NULL DEFAULT 0,
    late INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX run_results ON run (results_until) WHERE results_until IS NOT NULL;
CREATE INDEX run_cancelled ON run (id) WHERE state = 'cancelled' AND waiting > 0;

-- One line per queue, scraper, lane and pool of exits: what a worker can ask for.
CREATE TABLE line (
    id INTEGER PRIMARY KEY,
    queue TEXT NOT NULL,
    scraper TEXT NOT NULL,
    lane TEXT NOT NULL,
    pool TEXT NOT NULL,
    auto_ack INTEGER NOT NULL DEFAULT 0,
    held INTEGER NOT NULL DEFAULT 0,
    waiting INTEGER NOT NULL DEFAULT 0,
    leased INTEGER NOT NULL DEFAULT 0,
    UNIQUE (queue, scraper, lane, pool)
);
CREATE INDEX line_active ON line (scraper, lane, queue) WHERE waiting + leased > 0;

-- `load`: tasks of this site that have not ended or whose lease still lives. With 0 the next run sets the rules anew.
-- `begun_at`: by when the last request has surely begun, over all exits; kept where `site_delay` is set. `last_token`: the
-- lease that moved it last, `begun_before`: what it was before that. The rules are added when a claim looks at it, so that
-- a stricter rule counts from starts that were made before it came.
CREATE TABLE site (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    delay INTEGER NOT NULL,
    site_delay INTEGER NOT NULL,
    concurrency INTEGER NOT NULL,
    crawl_delay INTEGER NOT NULL DEFAULT 0,
    hard_timeout INTEGER NOT NULL,
    lease INTEGER NOT NULL,
    begun_at INTEGER NOT NULL DEFAULT 0,
    begun_before INTEGER NOT NULL DEFAULT 0,
    last_token INTEGER NOT NULL DEFAULT 0,
    load INTEGER NOT NULL DEFAULT 0
);

-- `begun_at`: as in `site`, for this exit alone. `blocked_until`: a rate limit, or a lost lease whose request may still be
-- under way. `penalty`: rate limits in a row.
CREATE TABLE slot (
    site INTEGER NOT NULL,
    exit TEXT NOT NULL,
    begun_at INTEGER NOT NULL DEFAULT 0,
    begun_before INTEGER NOT NULL DEFAULT 0,
    blocked_until INTEGER NOT NULL DEFAULT 0,
    live INTEGER NOT NULL DEFAULT 0,
    penalty INTEGER NOT NULL DEFAULT 0,
    last_at INTEGER NOT NULL DEFAULT 0,
    last_token INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (site, exit)
) WITHOUT ROWID;

-- For each line, the sites that have tasks ready (and how many), by the time they may next be visited. `due_at` is never
-- later than the truth; where it is earlier, the claim that meets it corrects it.
CREATE TABLE visit (
    line INTEGER NOT NULL,
    site INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    ready INTEGER NOT NULL,
    PRIMARY KEY (site, line)
) WITHOUT ROWID;
CREATE INDEX visit_due ON visit (line, due_at);

-- state: 0 ready, 1 waits for `not_before`, 2 leased, 3 held back because its run is paused
CREATE TABLE task (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    run INTEGER NOT NULL,
    line INTEGER NOT NULL,
    site INTEGER NOT NULL,
    state INTEGER NOT NULL DEFAULT 0,
    priority INTEGER NOT NULL DEFAULT 0,
    depth INTEGER NOT NULL DEFAULT 0,
    attempts INTEGER NOT NULL DEFAULT 0,
    crashes INTEGER NOT NULL DEFAULT 0,
    not_before INTEGER,
    expires_at INTEGER,
    url TEXT NOT NULL,
    handler TEXT,
    extra TEXT
);
CREATE INDEX task_ready ON task (line, site, priority DESC) WHERE state = 0;
CREATE INDEX task_delayed ON task (not_before) WHERE state = 1;
CREATE INDEX task_later ON task (line, not_before) WHERE state = 1;
CREATE INDEX task_aside ON task (run) WHERE state IN (1, 3);
CREATE INDEX task_expiry ON task (expires_at) WHERE expires_at IS NOT NULL AND state != 2;

CREATE TABLE lease (
    task INTEGER PRIMARY KEY,
    token INTEGER NOT NULL,
    worker INTEGER NOT NULL,
    run INTEGER NOT NULL,
    line INTEGER NOT NULL,
    site INTEGER NOT NULL,
    exit TEXT NOT NULL,
    claimed_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    auto_ack INTEGER NOT NULL
);
CREATE INDEX lease_expiry ON lease (expires_at);

CREATE TABLE worker (
    id INTEGER PRIMARY KEY,
    worker_id TEXT NOT NULL UNIQUE,
    machine TEXT NOT NULL,
    pid INTEGER NOT NULL,
    pid_started INTEGER NOT NULL,
    notebook TEXT,
    seen_at INTEGER NOT NULL
);

CREATE TABLE seen (
    run INTEGER NOT NULL,
    key BLOB NOT NULL,
    PRIMARY KEY (run, key)
) WITHOUT ROWID;

-- One row per settled task: `body` is the JSON array of the `n` items it gave.
CREATE TABLE item (
    id INTEGER PRIMARY KEY,
    run INTEGER NOT NULL,
    n INTEGER NOT NULL,
    url TEXT NOT NULL,
    grouping TEXT,
    body BLOB NOT NULL
);
CREATE INDEX item_run ON item (run, id);

CREATE TABLE dead (
    task INTEGER PRIMARY KEY,
    run INTEGER NOT NULL,
    line INTEGER NOT NULL,
    site INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    depth INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    crashes INTEGER NOT NULL,
    url TEXT NOT NULL,
    handler TEXT,
    extra TEXT,
    reason TEXT NOT NULL,
    died_at INTEGER NOT NULL
);
CREATE INDEX dead_run ON dead (run, task);

CREATE TABLE cache (
    key TEXT PRIMARY KEY,
    value BLOB NOT NULL,
    expires_at INTEGER NOT NULL
);
CREATE INDEX cache_expiry ON cache (expires_at);
