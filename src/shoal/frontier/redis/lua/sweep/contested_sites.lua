-- Letting go of strict rules: of a run that has ended, or has no work left at a site where others go on.
local relax_sites = (function() -- because Lua bears 200 local names at a time
local STRETCH = 200 -- how many contested sites one sweep looks at
local CROWD = 1000 -- how many tasks of a site are looked through; where there are more, its rules stay as they are
local LOOKED_THROUGH = 10000 -- how many leases, and tasks aside, of all sites; where there are more, those of none

local function is_over(run)
    return run.state == 'finished' or run.state == 'cancelled'
end

-- What a hash has of these sites; nil = there is too much to look through. `read` answers name, run and token of a value.
local function look_through(key, names, read)
    if call('HLEN', base .. key) > LOOKED_THROUGH then
        return nil
    end
    local found = {}
    for _, value in ipairs(call('HVALS', base .. key)) do
        local name, run, token = read(value)
        if names[name] then
            found[name] = found[name] or {}
            table.insert(found[name], {run, token})
        end
    end
    return found
end

local function read_aside(row)
    local _, run, _, name = unpack_some(row, 3, 0)
    return name, run
end

local function read_lease(lease)
    local _, _, _, run, _, _, name = unpack_some(lease, 6, 0)
    return name, run, cut(lease, 1, 9)
end

local function is_live(site)
    for at = SLOTS, #site, SLOT_SIZE do
        if site[at + S_LIVE] > 0 then
            return true
        end
    end
    return false
end

-- Add the runs of tasks that are ready in a line to `holders`. Answers false if they are too many to tell.
local function add_ready(line, name, holders)
    local own = find_run(line_of(line).queue)
    if own and own.rules.queue == own.id then
        holders[own] = true
        return true
    end
    local queue = queue_of(line, name)
    if ready_in(queue) > CROWD then
        return false
    end
    local entries = {unpack(queue, FIRST)}
    for at = 1, queue[OVER] ~= 0 and #queue[OVER] or 0, GROUP do
        local sorted = queue[OVER][at + 4]
        local key = overflow_key(line, name, queue[OVER][at], sorted)
        for _, entry in ipairs(call(sorted and 'ZRANGE' or 'LRANGE', key, 0, -1)) do
            entries[#entries + 1] = entry
        end
    end
    for _, entry in ipairs(entries) do
        local _, _, _, number, expires = unpack_some(entry, 4, 0)
        local run = (expires == 0 or expires > now) and run_of(number)
        if run then
            holders[run] = true
        end
    end
    return true
end

-- The rules that count at a site, packed, as a list of different ones; nil = there are too many tasks to tell.
local function rules_at(name, site, aside, leases)
    local holders = {}
    for _, line in ipairs(lines_of(site)) do
        if not add_ready(line, name, holders) then
            return nil
        end
    end
    if (site[ASIDE] > 0 and not aside) or (is_live(site) and not leases) then
        return nil
    end
    for _, row in ipairs(aside and aside[name] or {}) do
        local run = run_of(row[1])
        if run then
            holders[run] = true
        end
    end
    local different, known = {}, {}
    local function count_in(run)
        local rules = packed_rules(run.rules)
        if not known[rules] then
            known[rules] = true
            different[#different + 1] = rules
        end
    end
    for run in pairs(holders) do
        if not is_over(run) then
            count_in(run)
        end
    end
    for _, row in ipairs(leases and leases[name] or {}) do -- a request under way counts, however its run has ended
        local run = run_of(row[1])
        if run then
            count_in(run)
        end
    end
    return different
end

-- A lease that had its slot for itself may begin late, and make several requests: where others may join it from now on
-- (`behind` = -1), they wait until it has ended. So its slot's clock is put as far ahead as a lease lives, and by each sweep
-- again; its settlement puts it back. Answers whether there is such a lease.
local function hold_alone(name, leases, behind, latest)
    local site, held = known_site(name), false
    for at = SLOTS, #site, SLOT_SIZE do
        for _, row in ipairs(leases) do
            if site[at + S_LIVE] > 0 and site[at + S_LAST] == row[2] and site[at + S_BEGUN] > behind then
                held = true
                site_of(name)[at + S_BEGUN] = max(site[at + S_BEGUN], latest)
            end
        end
    end
    return held
end

local function relax(name, rules)
    site_of(name)[RULES] = rules
    look_at(name, now)
end

-- Whoever comes next has its rules looked at again, also one whose rules were among those that the site had: from now on it
-- has others, or is not contested any more.
local function rule_anew(name)
    for _, line in ipairs(lines_of(known_site(name))) do
        local ruled = queue_of(line, name)[RULED]
        if ruled and ruled ~= 0 then
            change_queue(line, name)[RULED] = 0
        end
    end
end

-- The rules that a site is to have: the strictest of these.
local function strictest_of(different)
    local rules = different[1]
    for index = 2, #different do
        rules = strictest(rules, different[index])
    end
    return rules
end

-- The contested sites that were not looked at for longest get the strictest rules of the runs that go on (or are paused) and
-- have work there. Answers whether there may be more.
return function()
    local names, wanted, any_aside, any_live = call('ZRANGE', base .. 'contested', 0, STRETCH - 1), {}, false, false
    if not names[1] then
        return false
    end
    close_pushes()
    load_sites(names)
    for _, name in ipairs(names) do
        local site = known_site(name)
        wanted[name] = true
        any_aside = any_aside or (site and site[ASIDE] > 0)
        any_live = any_live or (site and is_live(site))
    end
    local aside = any_aside and look_through('aside', wanted, read_aside)
    local leases = any_live and look_through('lease', wanted, read_lease)
    local settled, looked_at, relaxed = {}, {'XX', 'CH'}, false
    for _, name in ipairs(names) do
        local site = known_site(name)
        local different = site and rules_at(name, site, aside, leases) or not site and {}
        local rules, behind = different and strictest_of(different)
        local is_held, old = false, site and rules_of(site)
        local is_relaxed = rules and rules ~= site[RULES]
        if is_relaxed then
            local is_opened = old.concurrency == 1 and old.site_delay == 0 and read_rules(rules).concurrency > 1
            behind = is_opened and -1
            relax(name, rules)
            relaxed = true
        end
        if leases and leases[name] then
            is_held = hold_alone(name, leases[name], behind or now + floor(old.lease / 2), now + old.lease)
        end
        looked_at[#looked_at + 1], looked_at[#looked_at + 2] = text(now), name
        local is_settled = different and not different[2] and not is_held
        if is_settled then
            settled[#settled + 1] = name
        end
        if site and (is_settled or is_relaxed) then
            rule_anew(name)
        end
    end
    add_scores(base .. 'contested', looked_at)
    many('ZREM', base .. 'contested', settled)
    move_visits()
    return relaxed and #names == STRETCH
end
end)()
