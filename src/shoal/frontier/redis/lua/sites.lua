-- What is known of a site: one packed record in the hash `site`, read and written in batches.
-- ASIDE: how many of its tasks wait for their own time or for their paused run.
-- BEGUN: by when the last request has surely begun, over all exits; BEFORE: what that was before the lease LAST.
-- LINES: the lines where tasks of this site are ready: 0, the only one, or a list. The slots follow, eight values each.
local ASIDE, DELAY, SITE_DELAY, CONCURRENCY, HARD, LEASE, CRAWL, BEGUN, BEFORE, LAST, LINES, SLOTS =
    2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13
local S_BEGUN, S_BEFORE, S_BLOCKED, S_LIVE, S_PENALTY, S_USED, S_LAST, SLOT_SIZE = 1, 2, 3, 4, 5, 6, 7, 8

local sites, changed_sites = {}, {}

local function load_sites(names)
    local missing = {}
    for _, name in ipairs(names) do
        if sites[name] == nil then
            sites[name] = false
            missing[#missing + 1] = name
        end
    end
    for index, record in ipairs(fetch(base .. 'site', missing)) do
        if record then
            sites[missing[index]] = read_record(record)
        end
    end
end

local function site_of(name)
    if sites[name] == nil then
        load_sites({name})
    end
    local site = sites[name]
    if not site then
        site = {-1, 0, 0, 0, 0, 0, 0, 0, 0, 0, '', 0}
        sites[name] = site
    end
    changed_sites[name] = true
    return site
end

-- Whether nothing of this site waits or is being worked on.
local function is_idle(site)
    if site[LINES] ~= 0 or site[ASIDE] > 0 then
        return false
    end
    for at = SLOTS, #site, SLOT_SIZE do
        if site[at + S_LIVE] > 0 then
            return false
        end
    end
    return true
end

-- A site with no tasks takes the rules of the run that comes; one with tasks keeps the strictest of both.
local function open_site(site, rules)
    if is_idle(site) then
        site[DELAY], site[SITE_DELAY], site[CONCURRENCY] = rules.delay, rules.site_delay, rules.concurrency
        site[HARD], site[LEASE] = rules.hard_timeout, rules.lease
    else
        site[DELAY], site[SITE_DELAY] = max(site[DELAY], rules.delay), max(site[SITE_DELAY], rules.site_delay)
        site[CONCURRENCY] = min(site[CONCURRENCY], rules.concurrency)
        site[HARD], site[LEASE] = max(site[HARD], rules.hard_timeout), max(site[LEASE], rules.lease)
    end
end

-- Where the slot of this exit begins; opened if need be.
local function slot_of(site, exit)
    local size = #site
    for at = SLOTS, size, SLOT_SIZE do
        if site[at] == exit then
            return at
        end
    end
    site[size + 1], site[size + 2], site[size + 3], site[size + 4] = exit, 0, 0, 0
    site[size + 5], site[size + 6], site[size + 7], site[size + 8] = 0, 0, 0, ''
    return size + 1
end

local function slot_free_at(site, at)
    return max(site[at + S_BEGUN] + max(site[DELAY], site[CRAWL]), site[at + S_BLOCKED])
end

-- A slot of these sites has come free: whoever waits for the site may come as early as that, but not before others.
local earliest = {}
local function look_at(name, moment)
    earliest[name] = min(earliest[name] or moment, moment)
end

local function move_visits()
    local by_line = {}
    for name, moment in pairs(earliest) do
        local known = sites[name][LINES]
        if known ~= 0 then
            moment = text(max(moment, now))
            for _, line in ipairs(type(known) == 'table' and known or {known}) do
                local rows = by_line[line]
                if not rows then
                    rows = {'XX', 'LT'}
                    by_line[line] = rows
                end
                rows[#rows + 1] = moment
                rows[#rows + 1] = name
            end
        end
    end
    for line, rows in pairs(by_line) do
        add_scores(base .. 'd:' .. line, rows)
    end
    earliest = {}
end

local function close_sites()
    local rows, length = {}, 0
    for name in pairs(changed_sites) do
        rows[length + 1], rows[length + 2] = name, pack(sites[name])
        length = length + 2
    end
    many('HSET', base .. 'site', rows)
    changed_sites = {}
end
