-- Handing out tasks, slots first: walk the sites that may be visited now, take the head of each one's own list.
local granted, granted_count = {}, 0

local claim = (function() -- because Lua bears 200 local names at a time, and is slow to find many from inside functions
local ROUNDS, RIPEN_AT_MOST, LINES_AT_MOST = 8, 1000, 256
local KEEPS_SORTED = string.rep('-', 65)
-- Leases as they are answered, in pieces: joined once, at the end. A lease is a msgpack list of 18.
local LEASE, PIECES = '\220\0\18', 7
local POLL_AT_LEAST, POLL_AT_MOST = 100, 5000 -- when those with exits of their own look again, if nothing tells
local ended_at_claim = 0
local leases, lease_times = {}, {}
local same, granted_to = '', {}
local same_start, same_by, same_expires, same_pace, same_alone, same_penalty, same_exit, same_failures

-- Which lines the worker may draw from, preferred lanes first, within a lane at random; and what is left in all of them.
local function find_lines(scrapers, lanes, queues, exits, own)
    local found, left = {}, 0
    for _, scraper in ipairs(scrapers) do
        for preference, lane in ipairs(lanes) do
            local kind = scraper .. '\0' .. lane
            local active, numbers, exact = base .. 'act:' .. kind, nil, true
            if queues then
                numbers = {}
                for _, queue in ipairs(queues) do
                    for _, number in ipairs(call('SINTER', base .. 'ql:' .. queue, active)) do
                        numbers[#numbers + 1] = number
                    end
                end
            else
                numbers = call('SRANDMEMBER', active, LINES_AT_MOST)
                if #numbers == LINES_AT_MOST then
                    left, exact = left + tonumber(call('HGET', base .. 'tot', kind) or 0), false
                end
            end
            local fields = {}
            for _, number in ipairs(numbers) do
                fields[#fields + 1] = 'w' .. number
                fields[#fields + 1] = 'l' .. number
            end
            local counts = fetch(base .. 'lc', fields)
            for index, number in ipairs(numbers) do
                local line = line_of(tonumber(number))
                local waiting = tonumber(counts[2 * index - 1])
                if exact then
                    left = left + waiting + tonumber(counts[2 * index])
                end
                local ways = exits[line.pool]
                if waiting > 0 and ways and ways[1] and call('SISMEMBER', base .. 'held', number) == 0 then
                    found[#found + 1] = {line = line, ways = ways, exits = ways, private = own[line.pool],
                                         waiting = waiting, order = preference + math.random()}
                end
            end
        end
    end
    table.sort(found, function(one, other) return one.order < other.order end)
    return found, left
end

-- Which of its exits a line may use now; and when to look again for the sake of the others.
local function sort_exits(place, horizon)
    local usable, again = {}, nil
    known_exits.load(place.ways)
    for _, exit in ipairs(place.ways) do
        local health = known_exits.records[exit]
        if health and not known_exits.is_usable(health, horizon) then
            local moment = known_exits.look_again_at(health)
            again = min(again or moment, moment)
        else
            usable[#usable + 1] = exit
        end
    end
    place.exits, place.again, place.sorted_at = usable, again, known_exits.uses
end

-- The slots through which a site can be visited now, by turns, each as often as it has room; least recently used first.
local function find_openings(site, slots, rules, pace, horizon, most)
    local concurrency, limited = rules.concurrency, site[LIMITS] ~= 0
    if limited then
        if limits.site_free_at(site) > horizon then
            return {}
        elseif limits.is_on_probation(site, WHOLE_SITE) then
            most = min(most, 1)
        end
    end
    local openings, rooms = {}, {}
    if rules.site_delay > 0 then
        if site[slot_of(site, WHOLE_SITE) + S_BEGUN] + rules.site_delay > horizon then
            return openings
        end
        most = min(most, 1)
    end
    if #slots > 1 then
        local place_of = {}
        for index, at in ipairs(slots) do
            place_of[at] = index
        end
        table.sort(slots, function(one, other)
            local a, b = site[one + S_USED], site[other + S_USED]
            return a < b or (a == b and place_of[one] < place_of[other])
        end)
    end
    for index = 1, #slots do
        local at = slots[index]
        if site[at + S_LIVE] < concurrency and slot_free_at(site, at, pace) <= horizon then
            rooms[#rooms + 1] = at
        end
    end
    local size = 0
    for taken = 0, pace > 0 and 0 or concurrency - 1 do
        local before = size
        for index = 1, #rooms do
            local at = rooms[index]
            if size >= most then
                return openings
            elseif site[at + S_LIVE] + taken < concurrency 
                    and not (taken > 0 and limited and limits.is_on_probation(site, site[at])) then
                size = size + 1
                openings[size] = at
            end
        end
        if size == before then
            break
        end
    end
    return openings
end

-- When the site may next be visited, as far as can be known; a full slot is looked at when a lease ends.
local function due_at(site, slots, rules, pace)
    local moment
    for index = 1, #slots do
        local at = slots[index]
        local full = site[at + S_LIVE] >= rules.concurrency
        local free_at = full and now + max(rules.lease, pace) or slot_free_at(site, at, pace)
        if not moment or free_at < moment then
            moment = free_at
        end
    end
    if rules.site_delay > 0 then
        moment = max(moment, site[slot_of(site, WHOLE_SITE) + S_BEGUN] + rules.site_delay)
    end
    if site[LIMITS] ~= 0 then
        moment = max(moment, limits.site_free_at(site))
    end
    return moment > now and moment or now
end

-- How late a request may start where several leases share one clock: as shoal.politeness.start_window.
local function start_window(pace)
    return max(20, min(floor(pace / 20), 200))
end

-- Count one lease on a slot and move its clocks. Answers from when until when it may start, and if it is alone.
local function take(site, at, token, rules, pace, not_before)
    local site_delay, start_at, begun = rules.site_delay, not_before, site[at + S_BEGUN]
    if begun + pace > start_at or site[at + S_BLOCKED] > start_at or site[LIMITS] ~= 0 then
        start_at = max(start_at, slot_free_at(site, at, pace))
    end
    site[at + S_LIVE] = site[at + S_LIVE] + 1
    site[at + S_USED], site[at + S_LAST], site[at + S_BEFORE] = now, token, begun
    if site_delay == 0 and rules.concurrency == 1 then
        return start_at, start_at + floor(rules.lease / 2), true
    end
    local window = 0
    if pace > 0 and site_delay > 0 then
        window = start_window(min(pace, site_delay))
    elseif pace > 0 or site_delay > 0 then
        window = start_window(max(pace, site_delay))
    end
    if site_delay > 0 then
        local whole = slot_of(site, WHOLE_SITE)
        start_at = max(start_at, site[whole + S_BEGUN] + site_delay)
        site[whole + S_LAST], site[whole + S_BEFORE] = token, site[whole + S_BEGUN]
        site[whole + S_BEGUN] = start_at + window
    end
    site[at + S_BEGUN] = start_at + window
    return start_at, start_at + (window > 0 and window or floor(rules.lease / 2)), false
end

local function grant(line, name, site, at, rules, pace, run, entry, id)
    local token = cut(ask.tokens, 9 * granted_count + 1, 9 * granted_count + 9)
    granted_count = granted_count + 1
    local exit, expires, not_before, penalty, failures = site[at], now + rules.lease, now, 0, 0
    local health, limited = known_exits.any and known_exits.records[exit], site[LIMITS] ~= 0
    if health then
        not_before, failures = known_exits.use(exit, health, token, expires)
    end
    if limited then
        not_before = max(not_before, limits.site_free_at(site))
        penalty = limits.penalty_of(site, at)
    end
    local start_at, start_by, alone = take(site, at, token, rules, pace, not_before)
    if limited then
        limits.begin_probes(site, exit, token, expires)
    end
    local member, last, name_head = text(id), 2 * granted_count, head(#name)
    lease_times[last - 1] = text(expires)
    lease_times[last] = member
    -- Most leases of a claim are the same in most respects: what is the same is packed once.
    if not (same_start == start_at and same_by == start_by and same_expires == expires and same_pace == pace
            and same_alone == alone and same_penalty == penalty and same_exit == exit and same_failures == failures) then
        same_start, same_by, same_expires, same_pace = start_at, start_by, expires, pace
        same_alone, same_penalty, same_exit, same_failures = alone, penalty, exit, failures
        same = pack(exit, start_at, start_by, expires, pace, alone, penalty, failures)
    end
    local whose = line.whose
    if not whose or line.whose_run ~= run or line.whose_exit ~= exit then
        whose = pack(ask.worker[1], run.number, line.number, exit)
        line.whose, line.whose_run, line.whose_exit, line.packed = whose, run, exit, pack(line.number)
    end
    leases[last - 1] = member
    leases[last] = token .. whose .. name_head .. name .. (line.auto_ack and '' or entry)
    local piece = PIECES * (granted_count - 1)
    granted[piece + 1], granted[piece + 2], granted[piece + 3], granted[piece + 4] = LEASE, entry, line.packed, name_head
    granted[piece + 5], granted[piece + 6], granted[piece + 7] = name, token, same
    granted_to[run] = (granted_to[run] or 0) + 1
end

-- Count what was granted from a line, once for each run.
local function close_grants(line)
    for run, number in pairs(granted_to) do
        move(run, line, -number, number)
        count(run, 'waiting', -number)
        count(run, line.auto_ack and 'done' or 'leased', number)
        granted_to[run] = nil
    end
end

-- Pair the openings of one site with the heads of its list.
local function take_heads(line, name, site, queue, openings, rules, pace, horizon)
    local opening, spare = 1, 100
    while openings[opening] and spare > 0 do
        while known_exits.any and openings[opening] do -- an exit may just have come to its bounds
            local health = known_exits.records[site[openings[opening]]]
            if not health or known_exits.is_usable(health, horizon) then
                break
            end
            opening = opening + 1
        end
        if not openings[opening] then
            return
        end
        local entry = pop(line.number, name, queue)
        if not entry then
            return
        end
        local _, id, _, number, expires = unpack_some(entry, 4, 0)
        local run = run_of(number)
        if not run or run.emptied then -- its end was counted before
            spare = spare - 1
            if expires > 0 then
                no_longer_expiring[#no_longer_expiring + 1] = expiry_member(id, number, line.number, name)
            end
        elseif expires > 0 and expires <= now then
            spare = spare - 1
            jobs.leave_part(run, entry)
            if call('ZREM', base .. 'x', expiry_member(id, number, line.number, name)) == 1 then
                ended_at_claim = ended_at_claim + 1
                count(run, 'waiting', -1)
                count(run, 'expired', 1)
                move(run, line, -1, 0)
            end
        elseif run.state == 'paused' then
            spare = spare - 1
            hold(line.number, name, number, id, entry)
        else
            if expires > 0 then
                no_longer_expiring[#no_longer_expiring + 1] = expiry_member(id, number, line.number, name)
            end
            if run.state == 'cancelled' then
                spare = spare - 1
                ended_at_claim = ended_at_claim + 1
                count(run, 'waiting', -1)
                count(run, 'cancelled', 1)
                move(run, line, -1, 0)
            else
                grant(line, name, site, openings[opening], rules, pace, run, entry, id)
                if line.auto_ack then
                    jobs.leave_part(run, entry)
                end
                opening = opening + 1
            end
        end
    end
end

-- Visit a site by the one exit there is, where nothing but its own clock holds it up, as for most.
local the_only = {}
local function visit_plainly(line, name, queue, site, rules, exit, horizon)
    local at, pace = site[SLOTS] == exit and SLOTS or slot_of(site, exit), rules.delay
    if site[at + S_LIVE] < rules.concurrency and site[at + S_BEGUN] + pace <= horizon and site[at + S_BLOCKED] <= horizon then
        the_only[1] = at
        take_heads(line, name, site, queue, the_only, rules, pace, horizon)
        if is_empty(queue) then
            forget_visit(line.number, name)
            return nil
        end
    end
    local full = site[at + S_LIVE] >= rules.concurrency
    local due = full and now + max(rules.lease, pace) or slot_free_at(site, at, pace)
    return due > now and due or now
end

-- Visit a site: grant what can be granted. Answers when it may be visited again, or nil if nothing is left there.
local function visit(place, name, want, horizon)
    local line, exits, site = place.line, place.exits, site_of(name)
    local queue, rules = queues[line.number][name], rules_of(site)
    if not exits[2] and not known_exits.any and site[LIMITS] == 0 and rules.site_delay == 0 
            and (rules.concurrency == 1 or rules.delay > 0) and not is_empty(queue) then
        return visit_plainly(line, name, queue, site, rules, exits[1], horizon)
    end
    local pace, slots = pace_of(site), {}
    for nth = 1, #exits do
        slots[nth] = slot_of(site, exits[nth])
    end
    local openings = find_openings(site, slots, rules, pace, horizon, min(want - granted_count, ready_in(queue)))
    if openings[1] then
        take_heads(line, name, site, queue, openings, rules, pace, horizon)
    end
    if is_empty(queue) then
        forget_visit(line.number, name)
        return nil
    end
    local due = due_at(site, slots, rules, pace)
    if known_exits.any and place.sorted_at ~= known_exits.uses then
        sort_exits(place, horizon)
    end
    if place.again then
        due = min(due, site[LIMITS] ~= 0 and max(place.again, limits.site_free_at(site)) or place.again)
    end
    return due
end

-- Sites of a line that may be visited, longest due first; and which of them are new, by their places.
local function find_due(line, horizon, most)
    local key, new, came = base .. 'd:' .. line, first_new(line, most)
    if not new[1] then
        return call('ZRANGEBYSCORE', key, '-inf', horizon, 'LIMIT', 0, most), {}
    end
    local rows = call('ZRANGEBYSCORE', key, '-inf', horizon, 'WITHSCORES', 'LIMIT', 0, most)
    local names, is_new, at, nth = {}, {}, 1, 1
    for index = 1, min(most, #new + #rows / 2) do
        if new[nth] and not (rows[at] and tonumber(rows[at + 1]) <= came[nth]) then
            names[index], is_new[index] = new[nth], true
            nth = nth + 1
        else
            names[index] = rows[at]
            at = at + 2
        end
    end
    return names, is_new
end

-- Claim from one line.
local function draw(place, want, horizon)
    local line = place.line
    local key = base .. 'd:' .. line.number
    for _ = 1, ROUNDS do
        local names, is_new = find_due(line.number, horizon, want - granted_count)
        if #names == 0 then
            return
        end
        load_sites(names)
        load_queues(line.number, names)
        local later, over, size, met = {}, {}, 0, 0
        for index = 1, #names do
            local name = names[index]
            local due = visit(place, name, want, horizon)
            if is_new[index] then
                met = met + 1
                if due then
                    change_queue(line.number, name)
                end
            end
            if due then
                later[size + 1], later[size + 2] = text(due), name
                size = size + 2
            else
                over[#over + 1] = name
            end
            if granted_count >= want or not place.exits[1] then
                break
            end
        end
        close_grants(line)
        many('ZADD', key, later)
        many('ZREM', key, over)
        forget_new(line.number, met)
        if granted_count >= want or not place.exits[1] then
            return
        end
    end
end

-- Claim from one line by exits that others do not have: for them the site may be free now, so it stays due. A bounded
-- number of sites is looked at, those first that nobody has looked at for longest.
local function draw_by_own(place, want, horizon)
    local line, most = place.line, 4 * want + 64
    local key = base .. 'd:' .. line.number
    local names, is_new = find_due(line.number, horizon, most)
    if #names == 0 then
        return
    end
    load_sites(names)
    load_queues(line.number, names)
    local later, over, size, met, wake, looked_at = {}, {}, 0, 0, now + POLL_AT_MOST, text(now)
    for index = 1, #names do
        local name = names[index]
        local due = visit(place, name, want, horizon)
        if is_new[index] then
            met = met + 1
            if due then
                change_queue(line.number, name)
            end
        end
        if due then
            wake = min(wake, due)
            later[size + 1], later[size + 2] = looked_at, name
            size = size + 2
        else
            over[#over + 1] = name
        end
        if granted_count >= want or not place.exits[1] then
            break
        end
    end
    close_grants(line)
    many('ZADD', key, later)
    many('ZREM', key, over)
    forget_new(line.number, met)
    place.wake = #names == most and now + POLL_AT_LEAST or max(wake, now + 1)
end

local function earliest_visit(line)
    local first = call('ZRANGE', base .. 'd:' .. line, 0, 0, 'WITHSCORES')
    local _, came = first_new(line, 1)
    local moment = first[1] and tonumber(first[2])
    return moment and came[1] and min(moment, came[1]) or moment or came[1]
end

-- Grant up to `want` leases from what is due now. Answers what is left, and when anything can next be due.
local function claim(scrapers, lanes, queues, exits, private, want, ahead)
    end_expired(RIPEN_AT_MOST)
    close_lines()
    local own, horizon = {}, now + ahead
    for _, pool in ipairs(private) do
        own[pool] = true
    end
    local places, left = find_lines(scrapers, lanes, queues, exits, own)
    local delayed, waiting, wake = nil, 0, nil
    for _, place in ipairs(places) do
        local next_one = ripen(place.line.number, RIPEN_AT_MOST)
        if next_one and (not delayed or next_one < delayed) then
            delayed = next_one
        end
        waiting = waiting + place.waiting
    end
    close_queues()
    for _, place in ipairs(places) do
        if granted_count >= want then
            break
        end
        if known_exits.exist() then
            sort_exits(place, horizon)
        end
        if place.exits[1] then
            (place.private and draw_by_own or draw)(place, want, horizon)
        end
        if not place.exits[1] then
            place.wake = place.again
        end
    end
    hold_leases(ask.worker[1], granted_count)
    many('HSET', base .. 'lease', leases)
    if lease_times[1] then
        -- A long member keeps Redis from storing few leases as a list, in which everything is searched from the start.
        lease_times[#lease_times + 1] = '+inf'
        lease_times[#lease_times + 1] = KEEPS_SORTED
        many('ZADD', base .. 'le', lease_times)
    end
    local head, soonest
    local enough = want > 0 and want == granted_count
    if not enough or partitions > 1 then
        for _, place in ipairs(places) do
            local first = earliest_visit(place.line.number)
            if first then
                local again = place.wake or first - ahead
                head, soonest = min(head or first, first), min(soonest or again, again)
            end
        end
    end
    if enough then
        wake = waiting - granted_count - ended_at_claim > 0 and now or nil
    else
        wake = soonest and max(now, soonest)
        wake = wake and delayed and min(wake, delayed) or wake or delayed
    end
    return left - ended_at_claim, wake, head
end

return claim
end)()
