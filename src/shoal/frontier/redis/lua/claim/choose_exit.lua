-- Visiting one site: which of its slots are open, and which of its tasks go out by them.
local ended_at_claim = 0

local visit, sort_exits = (function() -- because Lua bears 200 local names at a time, and is slow to find many from inside functions
-- Which of its exits a line may use now; and when to look again for the sake of the others.
local function sort_exits(place, horizon)
    local usable, again = {}, nil
    known_exits.load(place.all_exits)
    for _, exit in ipairs(place.all_exits) do
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
            if run then
                endings.throw_away_late(run, entry, expires)
            end
            if expires > 0 then
                no_longer_expiring[#no_longer_expiring + 1] = expiry_member(id, number, line.number, name)
            end
        elseif expires > 0 and expires <= now then
            spare = spare - 1
            jobs.leave_part(run, entry)
            endings.throw_away(run, entry, 'expired', expires)
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
                endings.throw_away(run, entry, 'cancelled', now)
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

-- Visit a site without opening it, as can be done with most: one exit whose slot is the only one, nothing but its own clock
-- that holds it up, and a task at the head of its list that only waits. Answers if it was like that, and then as `visit`.
local function visit_packed(place, name, horizon)
    local line, exit = place.line, place.exits[1]
    local number, site = line.number, packed_sites[name]
    local queue = site and packed_queues[number][name]
    if not queue or line.auto_ack then
        return false
    end
    local top, at = read_top(site)
    if not top or top.exit ~= exit or top.line ~= number then
        return false
    end
    local rules, _, begun, _, blocked, live, penalty = top.rules, unpack_some(site, 5, at)
    if live > 0 or penalty > 0 or rules.concurrency > 1 or begun + rules.delay > horizon or blocked > horizon then
        return false
    end
    local rest_at, over, _, entry = unpack_some(queue, 3, 2)
    if over ~= 0 then
        return false
    end
    local _, id, _, owner, ends = unpack_some(entry, 4, 0)
    local run = run_of(owner)
    if ends > 0 or not run or run.emptied or run.state == 'paused' or run.state == 'cancelled' then
        return false
    end
    local token = grant_plainly(line, name, run, exit, rules, max(now, begun + rules.delay, blocked), entry, id)
    if rest_at ~= -1 then
        write_slot(name, cut(site, 1, at), begun, begun, blocked, 1, token)
        write_queue(number, name, cut(queue, 1, rest_at - #entry - #heads[#entry]) .. cut(queue, rest_at + 1))
        return true, now + max(rules.lease, rules.delay)
    end
    local exit_at = at - #exit - #heads[#exit]
    local up_to_exit = cut(site, 1, exit_at - #numerals[number]) .. numerals[0] .. cut(site, exit_at + 1, at)
    write_slot(name, up_to_exit, begun, begun, blocked, 1, token)
    queues[number][name] = {-1, 0, false}
    write_queue(number, name, nil)
    return true, nil
end

-- Visit a site by the only exit there is, where nothing but its own clock holds it up.
local the_only = {}
local function visit_plainly(line, name, queue, site, rules, exit, horizon)
    local at, pace = slot_of(site, exit), rules.delay
    the_only[1] = at
    if site[at + S_LIVE] < rules.concurrency and slot_free_at(site, at, pace) <= horizon then
        take_heads(line, name, site, queue, the_only, rules, pace, horizon)
        if is_empty(queue) then
            forget_visit(line.number, name)
            return nil
        end
    end
    return due_at(site, the_only, rules, pace)
end

-- Visit a site: grant what can be granted. Answers when it may be visited again, or nil if nothing is left there.
local function visit(place, name, want, horizon, is_new)
    local line, exits = place.line, place.exits
    if not is_new and not exits[2] and not known_exits.any then
        local is_done, due = visit_packed(place, name, horizon)
        if is_done then
            return due
        end
    end
    local site, queue = site_of(name), queue_of(line.number, name)
    local rules = rules_of(site)
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

return visit, sort_exits
end)()
