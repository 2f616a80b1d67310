-- Tasks that wait for something else than their site: for their own time (w:<line>), or for their paused run (h:<run>);
-- and the index of those whose time to live runs out (x). `aside` holds their entries.
local expiring, no_longer_expiring = {}, {}

local function expiry_member(id, run, line, name)
    return id .. ':' .. run .. ':' .. line .. ':' .. name
end

local function watch_expiry(expires, id, run, line, name)
    if expires > 0 then
        expiring[#expiring + 1] = expires
        expiring[#expiring + 1] = expiry_member(id, run, line, name)
    end
end

local function close_expiry()
    many('ZADD', base .. 'x', expiring)
    many('ZREM', base .. 'x', no_longer_expiring)
    expiring, no_longer_expiring = {}, {}
end

-- A number of fixed width, so that those of the same moment are in order.
local function padded(id)
    return string.format('%017.0f', id)
end

local function put_aside(line, name, run, id, entry)
    local site = site_of(name)
    site[ASIDE] = site[ASIDE] + 1
    call('HSET', base .. 'aside', id, pack(run, line, name, entry))
end

local function delay(line, name, run, id, entry, not_before)
    put_aside(line, name, run, id, entry)
    call('SADD', base .. 'a:' .. run, id)
    call('ZADD', base .. 'w:' .. line, not_before, padded(id))
end

local function hold(line, name, run, id, entry)
    put_aside(line, name, run, id, entry)
    call('SADD', base .. 'h:' .. run, id)
end

-- Delayed tasks of a line whose time has come take their places. Answers when the next one comes; nil = none.
local function ripen(line, most)
    local key = base .. 'w:' .. line
    local first = call('ZRANGE', key, 0, 0, 'WITHSCORES')
    if not first[1] or tonumber(first[2]) > now then
        return first[1] and tonumber(first[2])
    end
    local members, ids = call('ZRANGEBYSCORE', key, '-inf', now, 'LIMIT', 0, most), {}
    for index, member in ipairs(members) do
        ids[index] = text(tonumber(member))
    end
    local by_run, names, rows = {}, {}, fetch(base .. 'aside', ids)
    for index, row in ipairs(rows) do
        local _, run, _, name, entry = unpack_some(row, 4, 0)
        rows[index] = {run, name, entry}
        names[#names + 1] = name
        by_run[run] = by_run[run] or {}
        table.insert(by_run[run], ids[index])
    end
    load_sites(names)
    load_queues(line, names)
    for index, row in ipairs(rows) do
        local _, id, priority = unpack_some(row[3], 2, 0)
        place(line, row[2], id, priority, row[3])
        local site = site_of(row[2])
        site[ASIDE] = site[ASIDE] - 1
    end
    many('HDEL', base .. 'aside', ids)
    many('ZREM', key, members)
    for run, some in pairs(by_run) do
        many('SREM', base .. 'a:' .. run, some)
    end
    first = call('ZRANGE', key, 0, 0, 'WITHSCORES')
    return first[1] and tonumber(first[2])
end

-- Drop from a site's list what has expired: all of the packed entries, and whatever of the overflow comes first.
-- Their ends were counted before. What is left inside the overflow is dropped when its turn comes.
local function trim(line, name)
    local data = change_queue(line, name)
    for at = #data, FIRST, -1 do
        local _, _, _, number, expires = unpack_some(data[at], 4, 0)
        if expires > 0 and expires <= now then
            local run = run_of(number)
            if run then
                jobs.leave_part(run, data[at])
                endings.throw_away_late(run, data[at], expires)
            end
            table.remove(data, at)
        end
    end
    close_pushes()
    local at = 1
    while data[OVER] ~= 0 and data[OVER][at] do
        local over = data[OVER]
        local sorted = over[at + 4]
        local key = overflow_key(line, name, over[at], sorted)
        for _ = 1, 40 do
            local entries, stale = call(sorted and 'ZRANGE' or 'LRANGE', key, 0, 63), 0
            for _, entry in ipairs(entries) do
                local _, _, _, number, expires = unpack_some(entry, 4, 0)
                if expires == 0 or expires > now then
                    break
                end
                local run = run_of(number)
                if run then
                    jobs.leave_part(run, entry)
                    endings.throw_away_late(run, entry, expires)
                end
                stale = stale + 1
            end
            if stale > 0 then
                if sorted then
                    call('ZREMRANGEBYRANK', key, 0, stale - 1)
                else
                    call('LTRIM', key, stale, -1)
                end
                over[at + 1] = over[at + 1] - stale
            end
            if stale < 64 then
                break
            end
        end
        if over[at + 1] > 0 then
            over[at + 2] = first_of(key, sorted)
            at = at + GROUP
        else
            forget_overflow(data, at)
        end
    end
    if is_empty(data) then
        call('ZREM', base .. 'd:' .. line, name)
        forget_visit(line, name)
    end
end

-- The new sites at the front of a line that have nothing left are not waited for.
local function pass_empty(line, most)
    close_pushes()
    local names, passed = first_new(line, most), 0
    load_queues(line, names)
    while names[passed + 1] and is_empty(queue_of(line, names[passed + 1])) do
        passed = passed + 1
    end
    forget_new(line, passed)
end

-- Take a task out of what waits aside, and out of the indexes that lead to it.
local function take_aside(id, run, line, name)
    local site = site_of(name)
    site[ASIDE] = site[ASIDE] - 1
    call('HDEL', base .. 'aside', id)
    call('ZREM', base .. 'w:' .. line, padded(tonumber(id)))
    call('SREM', base .. 'a:' .. run, id)
    call('SREM', base .. 'h:' .. run, id)
end

-- End waiting tasks whose time is over. Answers how many.
local function end_expired(most)
    close_expiry()
    local members = call('ZRANGEBYSCORE', base .. 'x', '-inf', now, 'LIMIT', 0, most)
    if #members == 0 then
        return 0
    end
    many('ZREM', base .. 'x', members)
    local touched, later = {}, {}
    for _, member in ipairs(members) do
        local id, number, line, name = string.match(member, '^(%d+):(%d+):(%d+):(.*)$')
        local run = run_of(tonumber(number))
        line = tonumber(line)
        local over = not run or run.emptied -- counted before
        local leaving = run and move_state(run) == 'leaving'
        if leaving then -- what is being carried away is left as it is, and looked at again in a minute
            later[#later + 1] = now + 60000
            later[#later + 1] = member
        elseif call('HEXISTS', base .. 'aside', id) == 1 then
            if run then
                local _, _, _, _, entry = unpack_some(call('HGET', base .. 'aside', id), 4, 0)
                local _, _, _, _, expires = unpack_some(entry, 4, 0)
                jobs.leave_part(run, entry)
                endings.throw_away_late(run, entry, expires)
            end
            take_aside(id, number, line, name)
        else
            touched[line] = touched[line] or {}
            touched[line][name] = true
        end
        if not leaving and not over then
            count(run, 'waiting', -1)
            count(run, 'expired', 1)
            move(run, line_of(line), -1, 0)
        end
    end
    many('ZADD', base .. 'x', later)
    for line, names in pairs(touched) do
        for name in pairs(names) do
            trim(line, name)
        end
        pass_empty(line, most)
    end
    return #members
end
