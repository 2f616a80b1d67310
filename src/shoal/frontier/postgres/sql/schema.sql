-- The store of one frontier. All moments are milliseconds since the epoch, by the clock of this server.
--
-- `task` holds only what has not ended; what ended lives on in the counters of its run, in `item`, `dead` and `ending`.
--
-- THE LOCK ORDER, which every verb keeps, so that none waits for another in a circle:
--   0. the turn of those who submit or expire jobs (`take_turn`): one at a time, before they hold anything;
--   1. keys in `seen` (by run and key), rows of `ending` that are deleted (by run and name), new rows of `line` and `site` (by key): inserted before anything is locked;
--   2. rows of `site`, by id. A site's row is the one lock over everything of that site: its slots, its visits, the state
--      of its tasks. Whoever changes any of these holds it. Claims take it with SKIP LOCKED and so never wait;
--   3. rows of `task`, `slot`, `visit`: only under the lock of their site (a renewal takes tasks with SKIP LOCKED);
--      then rows of `cache` that settlements leave behind, by key;
--   4. rows of `exit_book`, by name: settlements that tell about exits wait for those. Claims take those with a cap and those
--      that are tried again with SKIP LOCKED; a patient claim, which holds nothing yet, waits for them and then passes over
--      sites that are locked. So nobody who holds one waits for a site;
--   5. `worker` with SKIP LOCKED; `tally_change` is only ever added to;
--   6. rows of `run`, by id; 7. rows of `line` and `tally` that exist (the fold, a pause); nothing is waited for after that.

CREATE TABLE run (
    id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    sealed boolean NOT NULL DEFAULT false,
    is_job boolean NOT NULL DEFAULT false,
    run_id text NOT NULL UNIQUE,
    scraper text NOT NULL,
    mode text NOT NULL,
    state text NOT NULL,
    queue text NOT NULL,
    policy text NOT NULL,
    input bytea,
    created_at bigint NOT NULL,
    ended_at bigint,
    results_until bigint,
    move text,
    -- what the frontier needs of the policy
    delay bigint NOT NULL,
    site_delay bigint NOT NULL,
    concurrency int NOT NULL,
    pool text NOT NULL,
    lease bigint NOT NULL,
    hard_timeout bigint NOT NULL,
    limit_exits int NOT NULL,
    limit_window bigint NOT NULL,
    crashes int NOT NULL,
    results_ttl bigint,
    lanes jsonb NOT NULL
) WITH (fillfactor = 70);
CREATE INDEX run_results ON run (results_until) WHERE results_until IS NOT NULL;
CREATE INDEX run_active ON run (id) WHERE state IN ('open', 'running');
CREATE INDEX run_unfinished ON run (id) WHERE state = 'running' AND sealed;
CREATE INDEX run_cancelled ON run (id) WHERE state = 'cancelled';
CREATE INDEX run_waits ON run (queue, id) WHERE is_job AND ended_at IS NULL;
CREATE INDEX run_ended ON run (ended_at, queue) WHERE is_job AND ended_at IS NOT NULL;

-- What a run has besides if it is a job. `groups`: JSON array. `gone_at`: since when its results are gone and only the
-- memory is left that there was such a job.
CREATE TABLE job (
    run int PRIMARY KEY,
    gone_at bigint,
    owner text NOT NULL,
    key text,
    fingerprint bytea NOT NULL,
    groups text NOT NULL,
    error text,
    callback bytea
);
CREATE UNIQUE INDEX job_key ON job (owner, key) WHERE key IS NOT NULL;
CREATE INDEX job_owner ON job (owner, run);
CREATE INDEX job_callback ON job (run) WHERE callback IS NOT NULL;
CREATE INDEX job_gone ON job (gone_at) WHERE gone_at IS NOT NULL;

-- How many jobs an owner has submitted in the window that ends at `resets_at`.
CREATE TABLE quota (
    owner text PRIMARY KEY,
    resets_at bigint NOT NULL,
    used bigint NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE record (
    kind text NOT NULL,
    name text NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (kind, name)
);

-- One line per queue, scraper, lane and pool of exits: what a worker can ask for. `waiting` and `live` (leases, also those
-- of lanes that acknowledge themselves) are true together with what `tally_change` adds to them.
CREATE TABLE line (
    id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    auto_ack boolean NOT NULL,
    held boolean NOT NULL,
    waiting bigint NOT NULL DEFAULT 0,
    live bigint NOT NULL DEFAULT 0,
    queue text NOT NULL,
    scraper text NOT NULL,
    lane text NOT NULL,
    pool text NOT NULL,
    UNIQUE (queue, scraper, lane, pool)
) WITH (fillfactor = 50);
CREATE INDEX line_active ON line (scraper, lane) WHERE waiting + live <> 0;

-- `begun_at`: by when the last request has surely begun, over all exits; kept where `site_delay` is set. `last_token`: the
-- lease that moved it last, `begun_before`: what it was before that. The rules are added when a claim looks at it, so that
-- a stricter rule counts from starts that were made before it came. `pace`: because the site was found to suffer; 0 = none.
-- `blocked_until`: a rate limit of the whole site, `cause`: what was said then. `probing`: after it, one request goes first,
-- `probe`: the token of its lease, while that is out.
CREATE TABLE site (
    id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    concurrency int NOT NULL,
    delay bigint NOT NULL,
    site_delay bigint NOT NULL,
    crawl_delay bigint NOT NULL DEFAULT 0,
    pace bigint NOT NULL DEFAULT 0,
    hard_timeout bigint NOT NULL,
    lease bigint NOT NULL,
    limit_window bigint NOT NULL,
    limit_exits int NOT NULL,
    probing boolean NOT NULL DEFAULT false,
    probe bigint NOT NULL DEFAULT 0,
    blocked_until bigint NOT NULL DEFAULT 0,
    begun_at bigint NOT NULL DEFAULT 0,
    begun_before bigint NOT NULL DEFAULT 0,
    last_token bigint NOT NULL DEFAULT 0,
    key text NOT NULL COLLATE "C" UNIQUE,
    cause text
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000);

-- Sites where runs with different rules have met, and when a sweep last looked whether all of them still have work there.
-- Whoever changes a row here holds the lock of the site.
CREATE TABLE contested_site (
    site int PRIMARY KEY,
    looked_at bigint NOT NULL DEFAULT 0
);
CREATE INDEX contested_site_looked ON contested_site (looked_at);

-- A slot by its site and exit, and a visit by its site and line, are there once: whoever adds one holds the lock of the
-- site. Their indexes do not say so, because a unique index looks at all that an old snapshot keeps of a row, whenever the
-- row changes. For the same reason they are searched from their ends, where the newest is found first: "site BETWEEN x AND
-- x … ORDER BY site DESC LIMIT 1", where "site = x" would leave the direction to the planner.

-- `begun_at`: as in `site`, for this exit alone. `blocked_until`: a rate limit, or a lost lease whose request may still be
-- under way, or a ban. `penalty`: rate limits in a row when the last one came, at `limited_at`; `limited_until`: what it
-- said. `probing`, `probe`: as in `site`. `cause`: what was said, '' = nothing; null = was never limited nor banned.
CREATE TABLE slot (
    site int NOT NULL,
    live int NOT NULL DEFAULT 0,
    begun_at bigint NOT NULL DEFAULT 0,
    begun_before bigint NOT NULL DEFAULT 0,
    blocked_until bigint NOT NULL DEFAULT 0,
    last_at bigint NOT NULL DEFAULT 0,
    last_token bigint NOT NULL DEFAULT 0,
    penalty int NOT NULL DEFAULT 0,
    probing boolean NOT NULL DEFAULT false,
    probe bigint NOT NULL DEFAULT 0,
    limited_at bigint NOT NULL DEFAULT 0,
    limited_until bigint NOT NULL DEFAULT 0,
    exit text NOT NULL COLLATE "C",
    cause text
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000);
CREATE INDEX slot_site ON slot (site, exit);
CREATE INDEX slot_limited ON slot (exit) WHERE cause IS NOT NULL;

-- For each line, the sites that have tasks ready (and how many), by the time they may next be visited. `due_at` is never
-- later than the truth; where it is earlier, the claim that meets it corrects it. No ready task has a `place` below
-- `floor`: the search for the head begins there, and does not walk over what was taken before.
CREATE TABLE visit (
    site int NOT NULL,
    line int NOT NULL,
    due_at bigint NOT NULL,
    floor bigint NOT NULL,
    ready int NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000);
CREATE INDEX visit_site ON visit (site, line);
CREATE INDEX visit_due ON visit (line, due_at);

-- No visit of a line is due before its newest `floor`, so that claims need not walk over what lay there before and cannot
-- be cleaned away while somebody keeps an old snapshot open. Raised several times a second (`raise_floor`) and checked
-- each minute (`check_floors`), under the lock of the line's row. Only ever added to and thinned out: the newest row is
-- found at once, however many old ones an old snapshot keeps. `upto`: the first transaction that had not begun by then.
CREATE TABLE line_floor (
    line int NOT NULL,
    at bigint NOT NULL,
    upto xid8 NOT NULL DEFAULT pg_snapshot_xmax(pg_current_snapshot()),
    floor bigint NOT NULL,
    checked boolean NOT NULL DEFAULT false
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
CREATE INDEX line_floor_at ON line_floor (line, at);
CREATE INDEX line_floor_checked ON line_floor (line, at) WHERE checked;

-- state: 0 ready, 1 waits for `not_before`, 2 leased (only then it has a token), 3 held back because its run is paused.
-- `place`: the order of tasks within their line and site: higher priority first, then first come.
-- `part`: in a job, the group of the task ('' = none); in other runs null, so that only jobs pay for the index.
CREATE SEQUENCE task_number;
CREATE TABLE task (
    id bigint PRIMARY KEY,
    place bigint NOT NULL,
    not_before bigint,
    expires_at bigint,
    token bigint,
    lease_until bigint,
    run int NOT NULL,
    line int NOT NULL,
    site int NOT NULL,
    worker int,
    priority int NOT NULL DEFAULT 0,
    depth int NOT NULL DEFAULT 0,
    attempts int NOT NULL DEFAULT 0,
    crashes int NOT NULL DEFAULT 0,
    state smallint NOT NULL DEFAULT 0,
    url text NOT NULL,
    handler text,
    exit text,
    extra text,
    part text
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 50000,
        autovacuum_analyze_scale_factor = 0.1, autovacuum_analyze_threshold = 20000);
CREATE INDEX task_ready ON task (line, site, place) WHERE state = 0;
CREATE INDEX task_delayed ON task (not_before) WHERE state = 1;
CREATE INDEX task_later ON task (line, not_before) WHERE state = 1;
CREATE INDEX task_held ON task (run) WHERE state = 3;
CREATE INDEX task_aside ON task (run) WHERE state IN (1, 3);
CREATE INDEX task_aside_site ON task (site) WHERE state IN (1, 3);
CREATE INDEX task_expiry ON task (expires_at) WHERE expires_at IS NOT NULL AND state <> 2;
CREATE INDEX task_part ON task (run, part) WHERE part IS NOT NULL;
CREATE INDEX task_leased ON task (lease_until) WHERE state = 2;

CREATE TABLE worker (
    id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    pid bigint NOT NULL,
    pid_started bigint NOT NULL,
    seen_at bigint NOT NULL,
    gone boolean NOT NULL DEFAULT false,
    worker_id text NOT NULL UNIQUE,
    machine text NOT NULL,
    notebook text,
    duties text NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE seen (
    run int NOT NULL,
    key bytea NOT NULL,
    PRIMARY KEY (run, key)
);

-- Exits that were put, have failed or were banned. `probe`: the token of the lease by which it was last tried again; it is
-- out as long as there is such a lease. Claims look only at those about which there is something to heed.
CREATE TABLE exit_book (
    name text COLLATE "C" PRIMARY KEY,
    cap int NOT NULL DEFAULT 0,
    failures int NOT NULL DEFAULT 0,
    quarantined_until bigint NOT NULL DEFAULT 0,
    banned_until bigint NOT NULL DEFAULT 0,
    probe bigint NOT NULL DEFAULT 0,
    address text NOT NULL DEFAULT '',
    pools text[] NOT NULL DEFAULT '{}'
) WITH (fillfactor = 50);
CREATE INDEX exit_heeded ON exit_book (name) WHERE failures > 0 OR quarantined_until > 0 OR banned_until > 0 OR cap > 0;

-- `id` is made as that of an item.
CREATE TABLE note (
    id bigint NOT NULL,
    expires_at bigint,
    stream text NOT NULL COLLATE "C",
    body bytea NOT NULL,
    PRIMARY KEY (stream, id)
);
CREATE INDEX note_expiry ON note (expires_at) WHERE expires_at IS NOT NULL;

-- One row per settled task: `body` is the JSON array of the `n` items it gave. `id` is made of the transaction and the
-- place in it: see read_items.
CREATE TABLE item (
    id bigint NOT NULL,
    run int NOT NULL,
    n int NOT NULL,
    url text NOT NULL,
    group_name text,
    body bytea NOT NULL,
    PRIMARY KEY (run, id)
);

CREATE TABLE dead (
    task bigint PRIMARY KEY,
    died_at bigint NOT NULL,
    run int NOT NULL,
    line int NOT NULL,
    site int NOT NULL,
    priority int NOT NULL,
    depth int NOT NULL,
    attempts int NOT NULL,
    crashes int NOT NULL,
    url text NOT NULL,
    handler text,
    extra text,
    reason text NOT NULL
);
CREATE INDEX dead_run ON dead (run, task);

-- How pages ended that were not done: expired, dropped or cancelled, or dead and purged since. `name`: as `names_of` in
-- `shoal.frontier.shared.endings` makes it. `url`: where it is spelled otherwise than one asks. Goes with the keys of its run.
-- Of several endings of one page the last counts. They are only ever added and deleted, so that nobody waits for one.
CREATE TABLE ending (
    ended_at bigint NOT NULL,
    run int NOT NULL,
    name bytea NOT NULL,
    state text NOT NULL,
    reason text,
    url text
);
CREATE INDEX ending_name ON ending (run, name);

CREATE TABLE cache (
    key text PRIMARY KEY,
    expires_at bigint NOT NULL,
    value bytea NOT NULL
);
CREATE INDEX cache_expiry ON cache (expires_at);

-- The counters of runs, by line (0 = of no line; run 0 = what only lines count): true together with what `tally_change` adds
-- to them. One row that all workers update would make them commit one after the other, so each transaction only adds a row
-- of its own here; a fold adds them up now and then. `ledger.upto`: all changes of older transactions have been folded, so
-- nobody looks below.
CREATE TABLE tally (
    run int NOT NULL,
    line int NOT NULL,
    waiting bigint NOT NULL DEFAULT 0,
    leased bigint NOT NULL DEFAULT 0,
    live bigint NOT NULL DEFAULT 0,
    done bigint NOT NULL DEFAULT 0,
    dead bigint NOT NULL DEFAULT 0,
    expired bigint NOT NULL DEFAULT 0,
    dropped bigint NOT NULL DEFAULT 0,
    cancelled bigint NOT NULL DEFAULT 0,
    items bigint NOT NULL DEFAULT 0,
    requests bigint NOT NULL DEFAULT 0,
    received bigint NOT NULL DEFAULT 0,
    retries bigint NOT NULL DEFAULT 0,
    snoozes bigint NOT NULL DEFAULT 0,
    crashes bigint NOT NULL DEFAULT 0,
    duplicates bigint NOT NULL DEFAULT 0,
    refused bigint NOT NULL DEFAULT 0,
    late bigint NOT NULL DEFAULT 0,
    saved_requests bigint NOT NULL DEFAULT 0,
    saved_bytes bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (run, line)
) WITH (fillfactor = 50);

CREATE TABLE tally_change (
    xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
    LIKE tally INCLUDING DEFAULTS
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);
CREATE INDEX tally_change_xid ON tally_change (xid);

-- `shift` is added to the numbers of transactions where they make the ids of items: more than 0 only in a store that was
-- dumped and restored into another server, where transactions are counted anew.
CREATE TABLE ledger (
    upto xid8 NOT NULL,
    shift bigint NOT NULL
) WITH (fillfactor = 50);
INSERT INTO ledger VALUES ('0', 0);
