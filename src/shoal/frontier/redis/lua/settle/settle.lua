-- Ending leases: results, links, counters and clocks together.
-- They come as a list by turns: a run id, and a flat list of those of this run that follow each other, ROW values each:
-- task, token, started_at (0 = no request), received, and the rest (0 = done with one request, and nothing came of it).
-- The rest: what happened, four values that belong to that; and, unless they are 1, 0, 0 and -1, requests, refused,
-- duplicates, and what it says about others than its task: the crawl delay (-1 = not said), or a list of that, pace (-1 =
-- not said), exits that failed, exits that work, the cause of a rate limit, notes, entries of the cache, parcels of
-- those for other partitions, and how many requests and bytes were saved. Behind that, where a snoozed task steps aside:
-- for how long.
local outbox = {}

local settle = (function() -- because Lua bears 200 local names at a time, and is slow to find many from inside functions
local DONE, RETRY, SNOOZE, DEAD, DROP = 0, 1, 2, 3, 4
local ROW = 5
local PLAIN = {DONE, 0, false, false, false}
local items, links, late, ended, done = {}, {}, {}, {}, {}

-- The clock of a slot after a lease: by when the last request has begun, and what that is without the last lease.
-- The last lease to be granted knows when the last request began, or that the clock stands where it stood before. For
-- any other, the clock was already set by those granted later, to the latest moment at which they may begin.
local function set_back(begun, before, is_last, started)
    if is_last then
        return started > before and started or before, before
    end
    return started > begun and started or begun, started > before and started or before
end

local function rest(site, at, token, started)
    site[at + S_BEGUN], site[at + S_BEFORE] =
        set_back(site[at + S_BEGUN], site[at + S_BEFORE], token == site[at + S_LAST], started)
end

-- The same for a site that need not be opened, where nothing is said about others. Answers if it was one.
local function free_packed(name, exit, token, started)
    local site = not known_exits.exist() and packed_sites[name]
    local top, at
    if site then
        top, at = read_top(site)
    end
    if not top or top.exit ~= exit then
        return false
    end
    local _, begun, before, blocked, live, penalty, _, last = unpack_some(site, 7, at)
    if penalty > 0 then
        return false
    end
    begun, before = set_back(begun, before, token == last, started)
    write_slot(name, cut(site, 1, at), begun, before, blocked, live - 1, last)
    if top.line ~= 0 then
        local moment = begun + top.rules.delay
        move_visit(top.line, name, blocked > moment and blocked or moment)
    end
    return true
end

-- Move the clocks of the slot, and of the site over all its exits where that has one.
local function free(name, exit, token, started, about, kind, wait, penalty)
    local site = site_of(name)
    local at = slot_of(site, exit)
    local told = about ~= -1 and type(about) == 'table' and about
    local crawl, pace, cause = about, -1, ''
    if told then
        crawl, pace, cause = told[1], told[2], told[5]
    end
    local changed = (crawl >= 0 or pace >= 0) and limits.set_pace(site, crawl, pace)
    site[at + S_LIVE], site[at + S_USED] = site[at + S_LIVE] - 1, now
    rest(site, at, token, started)
    if kind == SNOOZE and wait > 0 then
        limits.impose(name, site, at, wait, penalty, cause)
        changed = true -- whoever has other exits need not wait for this one
    elseif site[LIMITS] ~= 0 and limits.end_probes(site, exit, token, started > 0, 0) then
        changed = true
    end
    if known_exits.exist() then
        known_exits.leave(exit, token, now)
    end
    if told then
        known_exits.judge(told[3], told[4])
    end
    local moment, site_delay = slot_free_at(site, at, pace_of(site)), rules_of(site).site_delay
    if site_delay > 0 then
        local whole = slot_of(site, WHOLE_SITE)
        rest(site, whole, token, started)
        moment = min(moment, site[whole + S_BEGUN] + site_delay)
    end
    look_at(name, changed and now or moment)
end

-- Parcels for other partitions leave with a settlement or not at all; they are delivered later, once, whatever happens in
-- between.
local function send(run, parcels)
    for _, parcel in ipairs(parcels) do
        local serial = call('HINCRBY', base .. 'meta', 'parcel', 1)
        call('HSET', base .. 'out', serial, pack(parcel[1], run.id, parcel[2]))
        call('ZADD', base .. 'outz', now, serial)
        count(run, 'outbox', 1)
        outbox[#outbox + 1] = {serial, parcel[1]}
    end
end

-- What a settlement leaves behind besides its results; of a cancelled run, only the counts, and that it let go.
local function leave_behind(run, told)
    if told[9] > 0 or told[10] > 0 then
        count(run, 'saved_requests', told[9])
        count(run, 'saved_bytes', told[10])
    end
    if run.state == 'cancelled' then
        let_go(told[7])
    else
        keep_notes(told[6])
        keep_entries(told[7])
        send(run, told[8])
    end
end

-- Links are admitted at the end, those that are alike together.
local function bring(run, groups)
    local known = links[run]
    if not known then
        links[run], links[#links + 1] = groups, run
        return
    end
    for _, group in ipairs(groups) do
        local last = known[#known]
        if last[1] == group[1] and last[2] == group[2] and last[3] == group[3] and last[4] == group[4] then
            local flat, size, more = last[5], #last[5], group[5]
            for index = 1, #more do
                flat[size + index] = more[index]
            end
        else
            known[#known + 1] = group
        end
    end
end

-- The results of a task: its items, and its links, here or as parcels.
local function keep(run, number, record, here, parcels)
    if number > 0 then
        local records = items[run.number]
        if not records then
            records = {}
            items[run.number] = records
        end
        records[#records + 1] = record
        count(run, 'items', number)
    end
    if here then
        bring(run, here)
    end
    if parcels then
        send(run, parcels)
    end
end

-- An entry whose task is to remember something else.
local function with_extra(entry, body_at, extra)
    if not extra then
        return entry
    end
    local body = unpack_all(cut(entry, body_at + 1))
    return cut(entry, 1, body_at) .. '\148' .. pack(body[1], body[2], body[3], extra)
end

-- A task goes back into line: after `wait`, with one more attempt (RETRY), or unharmed (SNOOZE), at once or, where it steps
-- aside, after that.
local function return_task(run, line, name, entry, kind, wait, extra, aside)
    local next_at, id, priority, number, expires, attempts, crashes = unpack_some(entry, 6, 0)
    move(run, line, 1, 0)
    count(run, 'waiting', 1)
    watch_expiry(expires, id, number, line.number, name)
    if kind == RETRY then
        count(run, 'retries', 1)
        entry = pack(id, priority, number, expires, attempts + 1, crashes) .. cut(entry, next_at + 1)
        if wait > 0 then
            delay(line.number, name, number, id, entry, now + wait)
            return
        end
    else
        if wait > 0 then
            count(run, 'snoozes', 1)
        end
        entry = with_extra(entry, next_at, extra)
        if aside then
            delay(line.number, name, number, id, entry, now + aside)
            return
        end
    end
    place(line.number, name, id, priority, entry)
end

-- What becomes of a task that is not done.
local function apply(run, line, name, entry, kind, a, attempts, extra, aside)
    if kind == DEAD then
        bury(run, line.number, name, with_extra(entry, unpack_some(entry, 6, 0), extra), a, attempts, 0)
    elseif kind == DROP then
        count(run, 'dropped', 1)
        endings.throw_away(run, entry, 'dropped', now, a)
    else
        return_task(run, line, name, entry, kind, a, extra, aside)
    end
end

-- The leases behind settlements, LEASE values each, the first of them false where none stands: run, worker, line, exit,
-- site, and where its task's entry begins.
local LEASE = 6
local function find_leases(groups)
    local ids, names, leases, size, standing, at = {}, {}, {}, 0, 0, 0
    for nth = 2, #groups, 2 do
        local rows = groups[nth]
        for row = 1, #rows, ROW do
            size = size + 1
            ids[size] = rows[row]
        end
    end
    local packed, nth_lease = fetch(base .. 'lease', ids), 0
    for nth = 2, #groups, 2 do
        local rows = groups[nth]
        for row = 2, #rows, ROW do
            nth_lease = nth_lease + 1
            local lease = packed[nth_lease]
            if lease and cut(lease, 1, 9) == rows[row] then
                local entry_at, _, worker, run, line, exit, name = unpack_some(lease, 6, 0)
                leases[at + 1], leases[at + 2], leases[at + 3] = run, worker, line
                leases[at + 4], leases[at + 5], leases[at + 6] = exit, name, entry_at
                standing = standing + 1
                names[standing] = name
            else
                for value = 1, LEASE do
                    leases[at + value] = false
                end
            end
            at = at + LEASE
        end
    end
    load_sites(names)
    return packed, leases
end

-- A task that was leased comes to its end, or back. `entry_at` < 0: its lane acknowledged it at the claim.
local function end_task(run, line, name, lease, entry_at, rest)
    local kind = rest[1]
    if entry_at > 0 then
        count(run, 'leased', -1)
        if run.rules.job and kind ~= RETRY and kind ~= SNOOZE then
            jobs.leave_part(run, cut(lease, entry_at + 1))
        end
        if run.state ~= 'cancelled' and kind ~= DONE then
            return apply(run, line, name, cut(lease, entry_at + 1), kind, rest[2], rest[4], rest[5], rest[10])
        end
        count(run, run.state == 'cancelled' and 'cancelled' or 'done', 1)
        if run.state == 'cancelled' then
            endings.throw_away(run, cut(lease, entry_at + 1), 'cancelled', now)
        end
    end
    if kind == DONE and run.state ~= 'cancelled' and rest ~= PLAIN then
        keep(run, rest[2], rest[3], rest[4], rest[5])
    end
end

-- A settlement that says more than mostly, or where there is more to be done than mostly. Answers how many requests it was.
local function settle_row(run, rows, at, lease, leases, from)
    local line, name, rest, about, requests = line_of(leases[from + 3]), leases[from + 5], rows[at + 4], -1, 1
    if rest == 0 then
        rest = PLAIN
    end
    if rest[6] then
        requests, about = rest[6], rest[9]
        count(run, 'refused', rest[7])
        count(run, 'duplicates', rest[8])
    end
    hold_leases(leases[from + 2], -1)
    if about ~= -1 or rest[1] == SNOOZE or not free_packed(name, leases[from + 4], rows[at + 1], rows[at + 2]) then
        free(name, leases[from + 4], rows[at + 1], rows[at + 2], about, rest[1], rest[2], rest[3])
    end
    if type(about) == 'table' then
        leave_behind(run, about)
    end
    move(run, line, 0, -1)
    end_task(run, line, name, lease, leases[from + 6], rest)
    return requests
end

-- So many tasks that a worker had from a line are done.
local function count_done(run, line, worker, number)
    if number > 0 then
        hold_leases(worker, -number)
        move(run, line_of(line), 0, -number)
        count(run, 'leased', -number)
        count(run, 'done', number)
    end
end

-- Settlements of one run, which are those behind `place`. Those that only say that a task is done, and what came of it, are
-- counted together.
local function settle_rows(run, rows, place, packed, leases)
    local requests, received, stale, size = 0, 0, #late, #ended
    local may_be_plain, line, worker, plain = run.state ~= 'cancelled' and not run.rules.job, nil, nil, 0
    for at = 1, #rows, ROW do
        place = place + 1
        local id, from, rest = rows[at], LEASE * (place - 1), rows[at + 4]
        if leases[from + 1] ~= run.number or done[id] then
            late[#late + 1] = place
        else
            size = size + 1
            done[id], ended[size] = true, id
            received = received + rows[at + 3]
            if may_be_plain and (rest == 0 or rest[1] == DONE and not rest[6]) and leases[from + 6] > 0
                    and free_packed(leases[from + 5], leases[from + 4], rows[at + 1], rows[at + 2]) then
                if line ~= leases[from + 3] or worker ~= leases[from + 2] then
                    count_done(run, line, worker, plain)
                    line, worker, plain = leases[from + 3], leases[from + 2], 0
                end
                plain, requests = plain + 1, requests + 1
                if rest ~= 0 then
                    keep(run, rest[2], rest[3], rest[4], rest[5])
                end
            else
                requests = requests + settle_row(run, rows, at, packed[place], leases, from)
            end
        end
    end
    count_done(run, line, worker, plain)
    count(run, 'requests', requests)
    count(run, 'received', received)
    count(run, 'late', #late - stale)
end

-- Give effect to each settlement whose lease still stands. Answers which ones came too late, by their places.
local function settle(groups)
    local place, packed, leases = 0, find_leases(groups)
    for nth = 1, #groups, 2 do
        local run, rows = find_run(groups[nth]), groups[nth + 1]
        if run then
            settle_rows(run, rows, place, packed, leases)
        else
            for index = 1, #rows / ROW do
                late[#late + 1] = place + index
            end
        end
        place = place + #rows / ROW
    end
    many('HDEL', base .. 'lease', ended)
    many('ZREM', base .. 'le', ended)
    for number, records in pairs(items) do
        many('RPUSH', base .. 'it:' .. number, records)
    end
    move_visits()
    for _, run in ipairs(links) do
        admit(run, links[run])
    end
    return late
end

return settle
end)()
