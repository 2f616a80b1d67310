-- Letting tasks in: deduplicated, put in line, and their sites scheduled.
-- They come in groups of what is alike: berth, priority, wait, ttl (-1 = none), and a flat list of four values for each
-- task: site, key (false = always accepted), the set that the key belongs to, and what only the client reads.
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
        local known = queues[line.number]
        local strange = {}
        for index, name in ipairs(names) do
            if wait > 0 or known[name][RULED] ~= number then
                strange[#strange + 1] = name
            end
        end
        load_sites(strange)
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
            local data = known[name]
            if wait > 0 then
                open_site(site_of(name), rules)
                delay(line.number, name, number, id, entry, now + wait)
            elseif data[RULED] == number then
                place(line.number, name, id, priority, entry)
            else
                open_site(site_of(name), rules)
                place(line.number, name, id, priority, entry)
                data[RULED] = number
            end
        end
    end
    count(run, 'waiting', accepted)
    if run.state == 'finished' then
        reopen(run)
    end
    return accepted, offered
end
