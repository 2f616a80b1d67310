-- Ending leases: results, links, counters and clocks together.
-- They come as a flat list, ROW values each: task, token, run id, started_at (0 = no request), requests, received,
-- refused, duplicates, what it says about others than its task, what happened, and up to four values that belong to that.
-- About others: the crawl delay (-1 = not said), or a list of that, pace (-1 = not said), exits that failed, exits that
-- work, the cause of a rate limit, notes, entries of the cache, parcels of those for other partitions, and how many requests
-- and bytes were saved.
local outbox, settle = {}, nil

do -- a block, because Lua bears 200 local names at a time
local DONE, RETRY, SNOOZE, DEAD, DROP = 0, 1, 2, 3, 4
local ROW = 14
local items = {}

-- The last lease to be granted knows when the last request began, or that the clock stands where it stood before. For
-- any other, the clock was already set by those granted later, to the latest moment at which they may begin.
local function rest(site, at, token, started)
    local begun, before = site[at + S_BEGUN], site[at + S_BEFORE]
    if token == site[at + S_LAST] then
        site[at + S_BEGUN] = started > before and started or before
    else
        if started > begun then
            site[at + S_BEGUN] = started
        end
        if started > before then
            site[at + S_BEFORE] = started
        end
    end
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
    site[at + S_LIVE] = site[at + S_LIVE] - 1
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

-- What a settlement leaves behind besides its results; of a cancelled run, only the counts.
local function leave_behind(run, told)
    if told[9] > 0 or told[10] > 0 then
        count(run, 'saved_requests', told[9])
        count(run, 'saved_bytes', told[10])
    end
    if run.state ~= 'cancelled' then
        keep_notes(told[6])
        keep_entries(told[7])
        send(run, told[8])
    end
end

-- The results of a task: its items, and its links, here or as parcels.
local function keep(run, number, record, here, parcels, links)
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
        links[#links + 1] = {run, here}
    end
    if parcels then
        send(run, parcels)
    end
end

-- A task goes back into line: after `wait`, with one more attempt (RETRY), or at once and unharmed (SNOOZE).
local function return_task(run, line, name, entry, kind, wait, url, extra)
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
        if url or extra then -- the next step of a redirect
            local body = unpack_all(cut(entry, next_at + 1))
            entry = cut(entry, 1, next_at) .. '\148' .. pack(url or body[1], body[2], body[3], extra or body[4])
        end
    end
    place(line.number, name, id, priority, entry)
end

-- What becomes of a task that is not done.
local function apply(run, line, name, entry, kind, a, c, d)
    if kind == DEAD then
        bury(run, line.number, name, entry, a, 1, 0)
    elseif kind == DROP then
        count(run, 'dropped', 1)
    else
        return_task(run, line, name, entry, kind, a, c, d)
    end
end

-- The leases behind settlements: for each, where its task's entry begins, and worker, run, line, exit and site.
local function find_leases(rows)
    local ids, names, leases = {}, {}, {}
    for at = 1, #rows, ROW do
        ids[#ids + 1] = rows[at]
    end
    local packed = fetch(base .. 'lease', ids)
    for index, lease in ipairs(packed) do
        if lease and cut(lease, 1, 9) == rows[(index - 1) * ROW + 2] then
            leases[index] = {unpack_some(lease, 6, 0)}
            names[#names + 1] = leases[index][7]
        end
    end
    load_sites(names)
    return packed, leases
end

-- Give effect to each settlement whose lease still stands. Answers which ones came too late, by their places.
function settle(rows)
    local late, ended, done, links = {}, {}, {}, {}
    local packed, leases = find_leases(rows)
    for index = 1, #packed do
        local at, lease = (index - 1) * ROW, leases[index]
        local id = rows[at + 1]
        local run = lease and not done[id] and run_of(lease[4])
        if not run or run.id ~= rows[at + 3] then
            late[#late + 1] = index
            run = find_run(rows[at + 3])
            if run then
                count(run, 'late', 1)
            end
        else
            done[id] = true
            ended[#ended + 1] = id
            count(run, 'requests', rows[at + 5])
            count(run, 'received', rows[at + 6])
            count(run, 'refused', rows[at + 7])
            count(run, 'duplicates', rows[at + 8])
            hold_leases(lease[3], -1)
            local line, name, kind = line_of(lease[5]), lease[7], rows[at + 10]
            local a, b, c, d = rows[at + 11], rows[at + 12], rows[at + 13], rows[at + 14]
            free(name, lease[6], rows[at + 2], rows[at + 4], rows[at + 9], kind, a, b)
            if type(rows[at + 9]) == 'table' then
                leave_behind(run, rows[at + 9])
            end
            move(run, line, 0, -1)
            if lease[1] < 0 then -- no entry: the lane acknowledged it at the claim
                if run.state ~= 'cancelled' and kind == DONE then
                    keep(run, a, b, c, d, links)
                end
            else
                count(run, 'leased', -1)
                if run.state == 'cancelled' then
                    count(run, 'cancelled', 1)
                elseif kind == DONE then
                    count(run, 'done', 1)
                    keep(run, a, b, c, d, links)
                else
                    apply(run, line, name, cut(packed[index], lease[1] + 1), kind, a, c, d)
                end
            end
        end
    end
    many('HDEL', base .. 'lease', ended)
    many('ZREM', base .. 'le', ended)
    for number, records in pairs(items) do
        many('RPUSH', base .. 'it:' .. number, records)
    end
    move_visits()
    for _, link in ipairs(links) do
        admit(link[1], link[2])
    end
    return late
end

end
