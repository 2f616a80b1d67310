-- Letting tasks in: deduplicated, put in line, and their sites scheduled.
-- A row is: site, key (nil = always accepted), bucket, lane, priority, wait, ttl (-1 = none), what only the client reads.
local function admit(run, rows)
    local number, fresh = run.number, {}
    local seen = base .. 's:' .. number .. ':'
    for _, row in ipairs(rows) do
        if not row[2] or call('SADD', seen .. row[3], row[2]) == 1 then
            fresh[#fresh + 1] = row
        end
    end
    local accepted = #fresh
    if accepted < #rows then
        count(run, 'duplicates', #rows - accepted)
    end
    if accepted == 0 then
        return 0
    end
    local names, by_lane, loads = {}, {}, {}
    for _, row in ipairs(fresh) do
        local name, lane = row[1], row[4]
        if not loads[name] then
            names[#names + 1] = name
        end
        loads[name] = (loads[name] or 0) + 1
        by_lane[lane] = (by_lane[lane] or 0) + 1
    end
    load_sites(names)
    for lane, tasks in pairs(by_lane) do
        local line = line_for(run, lane)
        move(run, line, tasks, 0)
        load_queues(line.number, names)
    end
    for _, name in ipairs(names) do
        local site = site_of(name)
        open_site(site, run.rules)
        site[LOAD] = site[LOAD] + loads[name]
    end
    local ordinary = pack(0, number, 0, 0, 0)
    local serial = call('HINCRBY', base .. 'meta', 'serial', accepted) - accepted
    for index, row in ipairs(fresh) do
        local name, line, priority = row[1], run.lines[row[4]].number, row[5]
        local id = (serial + index) * partitions + partition
        local own, ttl, expires = run.rules.lanes[row[4]], row[7], 0
        if own and own[1] and (ttl < 0 or own[1] < ttl) then
            ttl = own[1]
        end
        if ttl >= 0 then
            expires = now + ttl
            watch_expiry(expires, id, number, line, name)
        end
        local entry = pack(id) .. (priority == 0 and expires == 0 and ordinary or pack(priority, number, expires, 0, 0))
            .. row[8]
        if row[6] > 0 then
            delay(line, name, number, id, entry, now + row[6])
        else
            place(line, name, id, priority, entry)
        end
    end
    count(run, 'waiting', accepted)
    if run.state == 'finished' then
        reopen(run)
    end
    return accepted
end
