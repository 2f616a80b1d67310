-- Leases that are lost: their tasks come back, or are dead letters after too many crashes, and their slots wait.

-- What the dead held, and what ran out, by task: when that was (0 = its worker is dead); what each of the dead had in hand,
-- where that is known; and how many leases these are.
local function find_lost(gone, most)
    local found, hands, number = {}, {}, 0
    for _, dead in ipairs(gone) do
        for _, id in ipairs(dead[2]) do
            if not found[id] then
                found[id] = 0
                number = number + 1
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
    local over = call('ZRANGEBYSCORE', base .. 'le', '-inf', now, 'WITHSCORES', 'LIMIT', 0, max(0, most - number))
    for index = 1, #over, 2 do
        if not found[over[index]] then
            found[over[index]] = tonumber(over[index + 1])
            number = number + 1
        end
    end
    return found, hands, number
end

-- The slot of a lost lease. Where the owner is known to be dead, its last request was sent before now: the slot waits until
-- the target has seen it, and one delay. Otherwise it may be alive and slow: the slot waits until anything it may have
-- started has surely ended.
local function free_lost(name, exit, token, expires, is_dead)
    local site = site_of(name)
    local at, pace, rules = slot_of(site, exit), pace_of(site), rules_of(site)
    site[at + S_LIVE] = site[at + S_LIVE] - 1
    local seen_by = expires + rules.hard_timeout
    if is_dead then -- politeness.transit_allowance
        seen_by = now + (pace > 0 and max({{TRANSIT_LEAST}}, floor(pace / {{TRANSIT_SHARE}})) or 0)
    end
    local free_at = seen_by + pace
    site[at + S_BLOCKED] = max(site[at + S_BLOCKED], free_at)
    if site[LIMITS] ~= 0 then
        limits.end_probes(site, exit, token, false, free_at)
    end
    if known_exits.exist() then
        known_exits.leave(exit, token, free_at)
    end
    look_at(name, slot_free_at(site, at, pace))
end

-- The task of a lost lease: it waits again, or comes to its end. Answers which: 'returned', 'buried' or 'refused'.
-- `hand`: what its worker had in hand when it died; nil = not known, and each of its tasks may have been the reason.
local function end_lost(run, line, name, entry, hand, reason)
    count(run, 'leased', -1)
    local next_at, id, priority, owner, expires, attempts, crashes = unpack_some(entry, 6, 0)
    local charged = (not hand or hand[id]) and 1 or 0
    count(run, 'crashes', charged)
    if run.state == 'cancelled' then
        count(run, 'cancelled', 1)
        endings.throw_away(run, entry, 'cancelled', now)
        jobs.leave_part(run, entry)
        return 'refused'
    elseif charged == 1 and crashes + 1 >= run.rules.crashes then
        bury(run, line.number, name, entry, reason[1] .. (crashes + 1) .. reason[2], 0, 1)
        jobs.leave_part(run, entry)
        return 'buried'
    end
    entry = pack(id, priority, owner, expires, attempts, crashes + charged) .. cut(entry, next_at + 1)
    watch_expiry(expires, id, owner, line.number, name)
    place(line.number, name, id, priority, entry)
    move(run, line, 1, 0)
    count(run, 'waiting', 1)
    return 'returned'
end

-- `reason`: what a dead letter says, before and behind the number of crashes. Answers how many tasks were returned, buried
-- and refused (because their run was cancelled).
local function bring_back(found, gone, hands, reason)
    local dead_workers, over, counts = {}, {}, {returned = 0, buried = 0, refused = 0}
    for _, dead in ipairs(gone) do
        dead_workers[dead[1]] = true
    end
    for id, expires in pairs(found) do
        local lease = call('HGET', base .. 'lease', id)
        local ends_at, _, worker, run, line, exit, name
        if lease then
            ends_at, _, worker, run, line, exit, name = unpack_some(lease, 6, 0)
        end
        local is_dead = dead_workers[worker]
        -- Since it was read what the dead held, somebody else may have brought a task back, and a third one have it now.
        local is_lost = expires > 0 or is_dead
        if is_lost then
            over[#over + 1] = id
        end
        if lease and is_lost then
            run, line = run_of(run), line_of(line)
            free_lost(name, exit, cut(lease, 1, 9), expires, is_dead)
            move(run, line, 0, -1)
            hold_leases(worker, -1)
            if ends_at > 0 then -- otherwise the lane acknowledged it at the claim
                local what = end_lost(run, line, name, cut(lease, ends_at + 1), is_dead and hands[worker], reason)
                counts[what] = counts[what] + 1
            end
        end
    end
    many('HDEL', base .. 'lease', over)
    many('ZREM', base .. 'le', over)
    move_visits()
    return counts
end
