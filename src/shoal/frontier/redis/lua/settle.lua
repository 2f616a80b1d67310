-- Ending leases: results, links, counters and clocks together.
-- A row is: task, token, run id, started_at (0 = no request), requests, received, refused, duplicates,
-- crawl_delay (-1 = not said), what happened, and then what belongs to that.
local DONE, RETRY, SNOOZE, DEAD, DROP = 0, 1, 2, 3, 4
local items, outbox = {}, {}

-- The last lease to be granted knows when the last request began, or that the clock stands where it stood before. For
-- any other, the clock was already set by those granted later, to the latest moment at which they may begin.
local function rest(record, begun, before, last, started)
    if last then
        record[begun] = max(record[before], started)
    else
        record[begun] = max(record[begun], started)
        record[before] = max(record[before], started)
    end
end

-- Move the clocks of the slot, and of the site over all its exits where that has one.
local function free(name, exit, row)
    local site, token, started, kind = site_of(name), row[2], row[4], row[10]
    local at = slot_of(site, exit)
    local changed = row[9] >= 0 and row[9] ~= site[CRAWL]
    if changed then
        site[CRAWL] = row[9]
    end
    site[at + S_LIVE] = site[at + S_LIVE] - 1
    rest(site, at + S_BEGUN, at + S_BEFORE, token == site[at + S_LAST], started)
    if kind == SNOOZE and row[11] > 0 then
        site[at + S_BLOCKED] = max(site[at + S_BLOCKED], now + row[11])
        site[at + S_PENALTY] = row[12]
    elseif started > 0 and kind ~= SNOOZE and site[at + S_PENALTY] > 0 then
        site[at + S_PENALTY] = site[at + S_PENALTY] - 1
    end
    local moment = slot_free_at(site, at)
    if site[SITE_DELAY] > 0 then
        rest(site, BEGUN, BEFORE, token == site[LAST], started)
        moment = min(moment, site[BEGUN] + site[SITE_DELAY])
    end
    look_at(name, changed and now or moment)
    return site
end

local function keep(run, row, links)
    if row[11] > 0 then
        local records = items[run.number]
        if not records then
            records = {}
            items[run.number] = records
        end
        records[#records + 1] = row[12]
        count(run, 'items', row[11])
    end
    if row[13] then
        links[#links + 1] = {run, row[13]}
    end
    if row[14] then -- links that belong to other partitions: they leave with this settlement or not at all
        for _, parcel in ipairs(row[14]) do
            local serial = call('HINCRBY', base .. 'meta', 'parcel', 1)
            call('HSET', base .. 'out', serial, pack(parcel[1], run.id, parcel[2]))
            call('ZADD', base .. 'outz', now, serial)
            count(run, 'outbox', 1)
            outbox[#outbox + 1] = {serial, parcel[1]}
        end
    end
end

local function apply(run, line, site, name, entry, row, links)
    local kind = row[10]
    if kind == DONE then
        site[LOAD] = site[LOAD] - 1
        count(run, 'done', 1)
        keep(run, row, links)
    elseif kind == DEAD then
        site[LOAD] = site[LOAD] - 1
        bury(run, line.number, name, entry, row[11], 1, 0)
    elseif kind == DROP then
        site[LOAD] = site[LOAD] - 1
        count(run, 'dropped', 1)
    else
        local next_at, id, priority, number, expires, attempts, crashes = unpack_some(entry, 6, 0)
        move(run, line, 1, 0)
        count(run, 'waiting', 1)
        watch_expiry(expires, id, number, line.number, name)
        if kind == RETRY then
            count(run, 'retries', 1)
            entry = pack(id, priority, number, expires, attempts + 1, crashes) .. cut(entry, next_at + 1)
            if row[11] > 0 then
                delay(line.number, name, number, id, entry, now + row[11])
                return
            end
        else
            if row[11] > 0 then
                count(run, 'snoozes', 1)
            end
            if row[13] or row[14] then -- the next step of a redirect
                local body = cmsgpack.unpack(cut(entry, next_at + 1))
                entry = cut(entry, 1, next_at)
                    .. '\148' .. pack(row[13] or body[1], body[2], body[3], row[14] or body[4])
            end
        end
        place(line.number, name, id, priority, entry)
    end
end

-- Give effect to each settlement whose lease still stands. Answers the tokens of those that came too late.
local function settle(rows)
    local ids, names, late, ended, links = {}, {}, {}, {}, {}
    for index, row in ipairs(rows) do
        ids[index] = text(row[1])
    end
    local leases = fetch(base .. 'lease', ids)
    for index, lease in ipairs(leases) do
        if lease then
            lease = {unpack_all(lease)}
            leases[index] = lease
            names[#names + 1] = lease[5]
        end
    end
    load_sites(names)
    for index, row in ipairs(rows) do
        local lease = leases[index]
        local run = lease and lease[1] == row[2] and not ended[row[1]] and run_of(lease[3])
        if not run or run.id ~= row[3] then
            late[#late + 1] = row[2]
            run = find_run(row[3])
            if run then
                count(run, 'late', 1)
            end
        else
            ended[row[1]] = true
            local sums = run.sums
            if not sums then
                sums = {0, 0, 0, 0}
                run.sums = sums
            end
            sums[1], sums[2], sums[3], sums[4] = sums[1] + row[5], sums[2] + row[6], sums[3] + row[7], sums[4] + row[8]
            hold_leases(lease[2], -1)
            local line, site = line_of(lease[4]), free(lease[5], lease[6], row)
            move(run, line, 0, -1)
            if lease[7] == '' then -- the lane acknowledged it at the claim
                site[LOAD] = site[LOAD] - 1
                if run.state ~= 'cancelled' and row[10] == DONE then
                    keep(run, row, links)
                end
            else
                count(run, 'leased', -1)
                if run.state == 'cancelled' then
                    site[LOAD] = site[LOAD] - 1
                    count(run, 'cancelled', 1)
                else
                    apply(run, line, site, lease[5], lease[7], row, links)
                end
            end
        end
    end
    ids = {}
    for id in pairs(ended) do
        ids[#ids + 1] = text(id)
    end
    many('HDEL', base .. 'lease', ids)
    many('ZREM', base .. 'le', ids)
    for _, run in pairs(runs) do
        if run and run.sums then
            for index, name in ipairs({'requests', 'received', 'refused', 'duplicates'}) do
                count(run, name, run.sums[index])
            end
            run.sums = nil
        end
    end
    for number, records in pairs(items) do
        many('RPUSH', base .. 'it:' .. number, records)
    end
    move_visits()
    for _, link in ipairs(links) do
        admit(link[1], link[2])
    end
    return late
end
