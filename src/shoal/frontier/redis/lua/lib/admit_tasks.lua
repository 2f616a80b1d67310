-- Letting tasks in: deduplicated, put in line, and their sites scheduled.

-- Tasks that are not the last ones of a packed queue go where they belong, in their order. Each: site, number, entry.
local function put_in_line(run, line, priority, wait, tasks)
    local number, strange = run.number, {}
    for index, task in ipairs(tasks) do
        if wait > 0 or queue_of(line, task[1])[RULED] ~= number then
            strange[#strange + 1] = task[1]
        end
    end
    load_sites(strange)
    for _, task in ipairs(tasks) do
        local name, id, entry = task[1], task[2], task[3]
        if wait > 0 then
            open_site(name, run.rules)
            delay(line, name, number, id, entry, now + wait)
        else
            local queue = queue_of(line, name)
            local is_ruled = queue[RULED] == number
            if not is_ruled then
                open_site(name, run.rules)
            end
            place(line, name, id, priority, entry)
            if not is_ruled then
                queue[RULED] = number
            end
        end
    end
end

-- Tasks come in groups of what is alike: lane (and pool), priority, wait, ttl (-1 = none), and a flat list of four values for
-- each task: site, key (false = always accepted), the set that the key belongs to (without one, the names of a page that is
-- let in again), and what only the client reads.
local function admit(run, groups)
    local number, rules, accepted, offered = run.number, run.rules, 0, 0
    local seen = base .. 's:' .. number .. ':'
    local all_seen = rules.job and seen .. 'j' -- few enough for one set
    for _, group in ipairs(groups) do
        local flat, fresh, size = group[5], {}, 0
        for at = 1, #flat, 4 do
            if not flat[at + 1] or call('SADD', all_seen or seen .. flat[at + 2], flat[at + 1]) == 1 then
                size = size + 1
                fresh[size] = at
                if not flat[at + 1] and flat[at + 2] then
                    endings.begin_again(run, flat[at + 2])
                end
            end
        end
        group.fresh = fresh
        accepted, offered = accepted + size, offered + #flat / 4
    end
    if accepted < offered then
        count(run, 'duplicates', offered - accepted)
    end
    if accepted == 0 then
        return 0
    end
    local serial = call('HINCRBY', base .. 'meta', 'serial', accepted) - accepted
    for _, group in ipairs(groups) do
        local priority, wait, ttl, flat, fresh = group[2], group[3], group[4], group[5], group.fresh
        local line, names = line_for(run, group[1]), {}
        local own = rules.lanes[line.lane]
        for index, at in ipairs(fresh) do
            names[index] = flat[at]
        end
        load_queues(line.number, names)
        move(run, line, #fresh, 0)
        if own and own[1] and (ttl < 0 or own[1] < ttl) then
            ttl = own[1]
        end
        local expires = ttl >= 0 and now + wait + ttl or 0
        local alike = pack(priority, number, expires, 0, 0)
        local packed, others = packed_queues[line.number], {}
        for index, at in ipairs(fresh) do
            local name = names[index]
            serial = serial + 1
            local id = serial * partitions + partition
            local entry = pack(id) .. alike .. flat[at + 3]
            if rules.job then
                jobs.count_part(run, flat[at + 3], 1)
            end
            if expires > 0 then
                watch_expiry(expires, id, number, line.number, name)
            end
            if wait > 0 or not (packed[name] and append(line.number, name, packed[name], number, priority, entry)) then
                others[#others + 1] = {name, id, entry}
            end
        end
        put_in_line(run, line.number, priority, wait, others)
    end
    count(run, 'waiting', accepted)
    if run.state == 'finished' then
        reopen(run)
    end
    return accepted, offered
end
