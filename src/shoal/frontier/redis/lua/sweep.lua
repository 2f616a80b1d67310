-- needs: prelude greet books endings sites limits rest exits notes queue aside bury release
-- One bounded sweep of a partition. `gone`: workers known to be dead, each with the leases it held and the tasks it had
-- in hand (nil = not known).
-- Answers what was done, the workers of the asking machine that hold leases, and the runs that have nothing left here.
local MOST = 2000
local question = ask[4]
local returned, buried, refused, lost_count = 0, 0, 0, 0

-- What the dead held, and what ran out. Where the owner is known to be dead, its last request was sent before now: the
-- slot waits until the target has seen it, and one delay. Otherwise it may be alive and slow: the slot waits until anything
-- it may have started has surely ended.
local function find_lost()
    local found, hands = {}, {}
    for _, dead in ipairs(question.gone) do
        for _, id in ipairs(dead[2]) do
            if not found[id] then
                found[id] = 0
                lost_count = lost_count + 1
            end
        end
        if dead[3] then
            local hand = {}
            for _, id in ipairs(dead[3]) do
                hand[id] = true
            end
            hands[dead[1]] = hand
        end
    end
    local over = call('ZRANGEBYSCORE', base .. 'le', '-inf', now, 'WITHSCORES', 'LIMIT', 0, max(0, MOST - lost_count))
    for index = 1, #over, 2 do
        if not found[over[index]] then
            found[over[index]] = tonumber(over[index + 1])
            lost_count = lost_count + 1
        end
    end
    return found, hands
end

local function bring_back(found, hands)
    local dead_workers = {}
    for _, dead in ipairs(question.gone) do
        dead_workers[dead[1]] = true
    end
    local over = {}
    for id, expires in pairs(found) do
        local lease = call('HGET', base .. 'lease', id)
        local ends_at, _, worker, run, line, exit, name
        if lease then
            ends_at, _, worker, run, line, exit, name = unpack_some(lease, 6, 0)
        end
        -- Since it was read what the dead held, somebody else may have brought a task back, and a third one have it now.
        local is_lost = expires > 0 or dead_workers[worker]
        if is_lost then
            over[#over + 1] = id
        end
        if lease and is_lost then
            local entry = ends_at > 0 and cut(lease, ends_at + 1)
            run, line = run_of(run), line_of(line)
            local site = site_of(name)
            local at, pace, rules = slot_of(site, exit), pace_of(site), rules_of(site)
            site[at + S_LIVE] = site[at + S_LIVE] - 1
            local seen_by = expires + rules.hard_timeout
            if dead_workers[worker] then
                seen_by = now + (pace > 0 and max(250, floor(pace / 4)) or 0) -- politeness.transit_allowance
            end
            local free_at = seen_by + pace
            site[at + S_BLOCKED] = max(site[at + S_BLOCKED], free_at)
            if site[LIMITS] ~= 0 then
                limits.end_probes(site, exit, cut(lease, 1, 9), false, free_at)
            end
            if known_exits.exist() then
                known_exits.leave(exit, cut(lease, 1, 9), free_at)
            end
            look_at(name, slot_free_at(site, at, pace))
            move(run, line, 0, -1)
            hold_leases(worker, -1)
            if entry then -- otherwise the lane acknowledged it at the claim
                count(run, 'leased', -1)
                local next_at, number, priority, owner, ends, attempts, crashes = unpack_some(entry, 6, 0)
                local hand = dead_workers[worker] and hands[worker]
                local charged = (not hand or hand[number]) and 1 or 0
                count(run, 'crashes', charged)
                if run.state == 'cancelled' then
                    count(run, 'cancelled', 1)
                    endings.throw_away(run, entry, 'cancelled', now)
                    refused = refused + 1
                    jobs.leave_part(run, entry)
                elseif charged == 1 and crashes + 1 >= run.rules.crashes then
                    bury(run, line.number, name, entry, question.reason .. (crashes + 1) .. question.reason_end, 0, 1)
                    buried = buried + 1
                    jobs.leave_part(run, entry)
                else
                    entry = pack(number, priority, owner, ends, attempts, crashes + charged)
                        .. cut(entry, next_at + 1)
                    watch_expiry(ends, number, owner, line.number, name)
                    place(line.number, name, number, priority, entry)
                    move(run, line, 1, 0)
                    count(run, 'waiting', 1)
                    returned = returned + 1
                end
            end
        end
    end
    many('HDEL', base .. 'lease', over)
    many('ZREM', base .. 'le', over)
    move_visits()
end

-- A task of a cancelled run ends.
local function cancel_one(run, line, name, id, expires)
    count(run, 'waiting', -1)
    count(run, 'cancelled', 1)
    move(run, line, -1, 0)
    if expires > 0 then
        no_longer_expiring[#no_longer_expiring + 1] = expiry_member(id, run.number, line.number, name)
    end
end

local function cancel_aside(run, key, budget)
    local ids = call('SRANDMEMBER', key, budget)
    for _, id in ipairs(ids) do
        local row = call('HGET', base .. 'aside', id)
        local _, _, line, name, entry = unpack_some(row, 4, 0)
        local _, _, _, _, expires = unpack_some(entry, 4, 0)
        take_aside(id, run.number, line, name)
        endings.throw_away(run, entry, 'cancelled', now)
        cancel_one(run, line_of(line), name, id, expires)
    end
    return #ids
end

-- The ready tasks of a line that belongs to one cancelled run.
local function cancel_line(run, number, budget)
    local line, done = line_of(number), 0
    if budget <= 0 then
        return 0
    end
    local names = first_new(number, budget)
    local new, passed = #names, 0
    for _, name in ipairs(call('ZRANGE', base .. 'd:' .. number, 0, budget - 1)) do
        names[#names + 1] = name
    end
    load_queues(number, names)
    for index, name in ipairs(names) do
        local queue = queue_of(number, name)
        while done < budget do
            local entry = pop(number, name, queue)
            if not entry then
                break
            end
            local _, id, _, _, expires = unpack_some(entry, 4, 0)
            if expires == 0 or expires > now or call('ZSCORE', base .. 'x', expiry_member(id, run.number, number, name)) then
                endings.throw_away(run, entry, 'cancelled', now)
                cancel_one(run, line, name, id, expires)
                done = done + 1
            else
                endings.throw_away(run, entry, 'expired', expires)
            end
        end
        if is_empty(queue) then
            if index <= new then
                passed = index
            else
                call('ZREM', base .. 'd:' .. number, name)
            end
            forget_visit(number, name)
        end
        if done >= budget then
            break
        end
    end
    forget_new(number, passed)
    return done
end

-- The ready tasks of a cancelled job end all at once, wherever they are: only their number is needed for that. Claims
-- throw away what they meet of them later.
local function empty_job(run, budget)
    local key = base .. 'c:' .. run.number
    if budget <= 0 or call('EXISTS', base .. 'a:' .. run.number, base .. 'h:' .. run.number) > 0 then
        return 0
    end
    local done = 0
    for _, name in ipairs(call('HKEYS', key)) do
        local lane = string.match(name, '^lane:(.*)$')
        if lane then
            local row = call('HMGET', key, name, 'l:' .. lane)
            local ready = row[1] - (row[2] or 0) + (run.counts[name] or 0) - (run.counts['l:' .. lane] or 0)
            count(run, 'waiting', -ready)
            count(run, 'cancelled', ready)
            move(run, line_for(run, lane), -ready, 0)
            done = done + ready
        end
    end
    run.emptied = true
    call('HSET', base .. 'r:' .. run.number, 'emptied', 1)
    return done
end

-- Waiting tasks of cancelled runs. In a shared queue the ready ones are ended by the claim that meets them, except those
-- of jobs.
local function end_cancelled()
    local done = 0
    for _, number in ipairs(call('SRANDMEMBER', base .. 'cancelled', 100)) do
        local run = run_of(tonumber(number))
        done = done + cancel_aside(run, base .. 'a:' .. number, MOST - done)
        done = done + cancel_aside(run, base .. 'h:' .. number, MOST - done)
        if run.rules.queue == run.id then
            for _, line in ipairs(call('SMEMBERS', base .. 'ql:' .. run.rules.queue)) do
                done = done + cancel_line(run, tonumber(line), MOST - done)
            end
        elseif run.rules.job and not run.emptied then
            done = done + empty_job(run, MOST - done)
        end
        local waiting = tonumber(call('HGET', base .. 'c:' .. number, 'waiting') or 0) + (run.counts.waiting or 0)
        if waiting <= 0 then
            call('SREM', base .. 'cancelled', number)
        end
        if done >= MOST then
            break
        end
    end
    return done
end

-- Results whose time is over. Answers how many items went, and if more may.
local function delete_results()
    local deleted, batches = 0, 0
    for _, number in ipairs(call('ZRANGEBYSCORE', base .. 'res', '-inf', now, 'LIMIT', 0, 100)) do
        local key = base .. 'it:' .. number
        local gone = call('LPOP', key, MOST - batches)
        if gone then
            for _, record in ipairs(gone) do
                local _, some = unpack_some(record, 1, 0)
                deleted = deleted + some
            end
            batches = batches + #gone
            call('HINCRBY', base .. 'r:' .. number, 'first_item', #gone)
        end
        if call('EXISTS', key) == 0 then
            call('ZREM', base .. 'res', number)
            call('HDEL', base .. 'r:' .. number, 'results_until')
        end
        if batches >= MOST then
            break
        end
    end
    return deleted, batches
end

local function forget_workers()
    for _, worker in ipairs(call('ZRANGEBYSCORE', base .. 'ws', '-inf', '(' .. (now - 3600000), 'LIMIT', 0, 100)) do
        if tonumber(call('HGET', base .. 'wn', worker) or 0) <= 0 then
            local row = call('HGET', base .. 'wk', worker)
            call('ZREM', base .. 'ws', worker)
            call('HDEL', base .. 'wk', worker)
            call('HDEL', base .. 'wn', worker)
            if row then
                call('SREM', base .. 'wm:' .. cmsgpack.unpack(row)[2], worker)
            end
        end
    end
end

-- What is over of the lists of sites that exits may not visit.
local function forget_bans()
    for _, exit in ipairs(call('ZRANGEBYSCORE', base .. 'bx', '-inf', now, 'LIMIT', 0, 100)) do
        call('UNLINK', base .. 'b:' .. exit)
        call('ZREM', base .. 'bx', exit)
    end
end

-- Runs that were resumed while many of their tasks were held back: the rest of them.
local function thaw()
    local done = 0
    for _, number in ipairs(call('SRANDMEMBER', base .. 'thaw', 20)) do
        done = done + release(run_of(tonumber(number)), MOST)
    end
    return done
end

local found, hands = find_lost()
if lost_count > 0 then
    bring_back(found, hands)
end
local expired = end_expired(MOST)
local cancelled = end_cancelled()
local deleted, batches = delete_results()
local thawed = thaw()
local forgotten = end_notes(MOST)
forget_bans()
forget_slots()
forget_workers()
call('ZREMRANGEBYSCORE', base .. 'in', '-inf', now - 3600000)
local holders = {}
for _, worker in ipairs(call('SMEMBERS', base .. 'wm:' .. question.machine)) do
    if tonumber(call('HGET', base .. 'wn', worker) or 0) > 0 then
        local row = call('HGET', base .. 'wk', worker)
        holders[#holders + 1] = row and cmsgpack.unpack(row) or nil
    end
end
close_queues()
close_expiry()
close_sites()
if known_exits.any then
    known_exits.close()
end
close_workers()
local quiet = close_books()
local more = lost_count >= MOST or expired >= MOST or cancelled >= MOST or batches >= MOST or thawed >= MOST
    or forgotten >= MOST
return '\152' .. pack(returned, buried, expired, cancelled + refused, deleted, more, holders, quiet)
