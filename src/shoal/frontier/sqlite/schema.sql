-- The store of one frontier. All moments are milliseconds since the epoch.
-- `task` holds only what has not ended; what ended lives on in the counters of its run, in `item`, `dead` and `ending`.

CREATE TABLE run (
    id INTEGER PRIMARY KEY,
    run_id TEXT NOT NULL UNIQUE,
    scraper TEXT NOT NULL,
    mode TEXT NOT NULL,
    state TEXT NOT NULL,
    queue TEXT NOT NULL,
    policy TEXT NOT NULL,
    input BLOB,
    is_job INTEGER NOT NULL DEFAULT 0,
    sealed INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL,
    ended_at INTEGER,
    results_until INTEGER,
    move TEXT,
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
    late INTEGER NOT NULL DEFAULT 0,
    saved_requests INTEGER NOT NULL DEFAULT 0,
    saved_bytes INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX run_results ON run (results_until) WHERE results_until IS NOT NULL;
CREATE INDEX run_cancelled ON run (id) WHERE state = 'cancelled' AND waiting > 0;
CREATE INDEX run_unfinished ON run (queue, id) WHERE is_job AND ended_at IS NULL;
CREATE INDEX run_ended ON run (ended_at, queue) WHERE is_job AND ended_at IS NOT NULL;

-- What a run has besides if it is a job. `groups`: JSON array. `gone_at`: since when its results are gone and only the
-- memory is left that there was such a job.
CREATE TABLE job (
    run INTEGER PRIMARY KEY,
    owner TEXT NOT NULL,
    key TEXT,
    fingerprint BLOB NOT NULL,
    groups TEXT NOT NULL,
    error TEXT,
    callback BLOB,
    gone_at INTEGER
);
CREATE UNIQUE INDEX job_key ON job (owner, key) WHERE key IS NOT NULL;
CREATE INDEX job_owner ON job (owner, run);
CREATE INDEX job_callback ON job (run) WHERE callback IS NOT NULL;
CREATE INDEX job_gone ON job (gone_at) WHERE gone_at IS NOT NULL;

CREATE TABLE quota (
    owner TEXT PRIMARY KEY,
    resets_at INTEGER NOT NULL,
    used INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE record (
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (kind, name)
) WITHOUT ROWID;

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

-- While a site has no task that has not ended, and no lease, the next run sets the rules anew.
-- `begun_at`: by when the last request has surely begun, over all exits; kept where `site_delay` is set. `last_token`: the
-- lease that moved it last, `begun_before`: what it was before that. The rules are added when a claim looks at it, so that
-- a stricter rule counts from starts that were made before it came. `pace`: what the site was found to bear; 0 = not known
-- to suffer. `limited`: whether there is anything about it in `slot_limit` or `site_limit`, so that most claims need not look.
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
    limit_exits INTEGER NOT NULL DEFAULT 3,
    limit_window INTEGER NOT NULL DEFAULT 60000,
    pace INTEGER NOT NULL DEFAULT 0,
    limited INTEGER NOT NULL DEFAULT 0
);

-- Sites where runs with different rules have met, and when a sweep last looked whether all of them still have work there.
CREATE TABLE contested_site (
    site INTEGER PRIMARY KEY,
    looked_at INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX contested_site_looked ON contested_site (looked_at);

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

-- The last rate limit of a slot. `probing`: one request goes first when it is over; `probe`: the token of its lease, while
-- that is out. A slot that was only banned by hand has a row as well, with `limited_at` 0.
CREATE TABLE slot_limit (
    site INTEGER NOT NULL,
    exit TEXT NOT NULL,
    limited_at INTEGER NOT NULL DEFAULT 0,
    limited_until INTEGER NOT NULL DEFAULT 0,
    probing INTEGER NOT NULL DEFAULT 0,
    probe INTEGER NOT NULL DEFAULT 0,
    cause TEXT,
    PRIMARY KEY (site, exit)
) WITHOUT ROWID;
CREATE INDEX slot_limit_exit ON slot_limit (exit);
CREATE INDEX slot_limit_over ON slot_limit (limited_until);

-- The last rate limit of a whole site; `probing` and `probe` as in `slot_limit`, over all exits.
CREATE TABLE site_limit (
    site INTEGER PRIMARY KEY,
    blocked_until INTEGER NOT NULL,
    probing INTEGER NOT NULL,
    probe INTEGER NOT NULL,
    cause TEXT
);

-- Exits that were put, have failed or were banned. `probe`: the token of the one lease by an exit that is tried again.
-- Claims look only at those about which there is something to heed.
CREATE TABLE exit (
    name TEXT PRIMARY KEY,
    address TEXT NOT NULL DEFAULT '',
    pools TEXT NOT NULL DEFAULT '[]',
    cap INTEGER NOT NULL DEFAULT 0,
    failures INTEGER NOT NULL DEFAULT 0,
    quarantined_until INTEGER NOT NULL DEFAULT 0,
    probe INTEGER NOT NULL DEFAULT 0,
    banned_until INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX exit_heeded ON exit (name) WHERE failures + quarantined_until + cap + banned_until > 0;
CREATE INDEX exit_probed ON exit (probe) WHERE probe > 0;

-- AUTOINCREMENT: a cursor never meets a number again that it has passed.
CREATE TABLE note (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    stream TEXT NOT NULL,
    expires_at INTEGER,
    body BLOB NOT NULL
);
CREATE INDEX note_stream ON note (stream, id);
CREATE INDEX note_expiry ON note (expires_at) WHERE expires_at IS NOT NULL;

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

-- state: 0 ready, 1 waits for `not_before`, 2 leased, 3 held back because its run is paused.
-- part: in a job, the group of the task ('' = none); in other runs null, so that only jobs pay for the index.
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
    extra TEXT,
    part TEXT
);
CREATE INDEX task_part ON task (run, part) WHERE part IS NOT NULL;
CREATE INDEX task_ready ON task (line, site, priority DESC) WHERE state = 0;
CREATE INDEX task_delayed ON task (not_before) WHERE state = 1;
CREATE INDEX task_later ON task (line, not_before) WHERE state = 1;
CREATE INDEX task_aside ON task (run) WHERE state IN (1, 3);
CREATE INDEX task_of_site ON task (site) WHERE state IN (1, 3);
CREATE INDEX task_expiry ON task (expires_at) WHERE expires_at IS NOT NULL AND state != 2;

-- As many as there are requests in flight: whoever looks for some of them looks through all, and there is no index.
CREATE TABLE lease (
    task INTEGER PRIMARY KEY,
    token INTEGER NOT NULL,
    worker INTEGER NOT NULL,
    run INTEGER NOT NULL,
    line INTEGER NOT NULL,
    site INTEGER NOT NULL,
    exit TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    auto_ack INTEGER NOT NULL
);

CREATE TABLE worker (
    id INTEGER PRIMARY KEY,
    worker_id TEXT NOT NULL UNIQUE,
    machine TEXT NOT NULL,
    pid INTEGER NOT NULL,
    pid_started INTEGER NOT NULL,
    notebook TEXT,
    duties TEXT NOT NULL,
    seen_at INTEGER NOT NULL
);

-- The keys that runs have seen. They come in at the end of `seen_lately`, many to a row, and go to
-- `seen` a slice at a time (`seen.py`). In between they may be in both.
CREATE TABLE seen (
    run INTEGER NOT NULL,
    key BLOB NOT NULL,
    PRIMARY KEY (run, key)
) WITHOUT ROWID;
CREATE TABLE seen_lately (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    run INTEGER NOT NULL,
    keys BLOB NOT NULL
);

-- How many slices have been sorted in, round after round; and the last row of `seen_lately` when this round began, which
-- is not needed when it is over.
CREATE TABLE seen_round (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    sorted INTEGER NOT NULL,
    until INTEGER NOT NULL
);

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

-- How pages ended that were not done: expired, dropped or cancelled, or dead and purged since. `name`: as `names_of` in
-- `shoal.frontier.shared.endings` makes it. `url`: where it is spelled otherwise than one asks. Goes with the keys of its run.
CREATE TABLE ending (
    run INTEGER NOT NULL,
    name BLOB NOT NULL,
    state TEXT NOT NULL,
    ended_at INTEGER NOT NULL,
    reason TEXT,
    url TEXT,
    PRIMARY KEY (run, name)
) WITHOUT ROWID;

CREATE TABLE cache (
    key TEXT PRIMARY KEY,
    value BLOB NOT NULL,
    expires_at INTEGER NOT NULL
);
CREATE INDEX cache_expiry ON cache (expires_at);
