-- The waiting tasks of cancelled runs end.

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
local function end_cancelled(most)
    local done = 0
    for _, number in ipairs(call('SRANDMEMBER', base .. 'cancelled', 100)) do
        local run = run_of(tonumber(number))
        done = done + cancel_aside(run, base .. 'a:' .. number, most - done)
        done = done + cancel_aside(run, base .. 'h:' .. number, most - done)
        if run.rules.queue == run.id then
            for _, line in ipairs(call('SMEMBERS', base .. 'ql:' .. run.rules.queue)) do
                done = done + cancel_line(run, tonumber(line), most - done)
            end
        elseif run.rules.job and not run.emptied then
            done = done + empty_job(run, most - done)
        end
        local waiting = tonumber(call('HGET', base .. 'c:' .. number, 'waiting') or 0) + (run.counts.waiting or 0)
        if waiting <= 0 then
            call('SREM', base .. 'cancelled', number)
        end
        if done >= most then
            break
        end
    end
    return done
end
