-- Handing out tasks, slots first: walk the sites that may be visited now, take the head of each one's own list.
local claim = (function() -- because Lua bears 200 local names at a time, and is slow to find many from inside functions
local ROUNDS, RIPEN_AT_MOST, LINES_AT_MOST = 8, 1000, 256
local POLL_AT_LEAST, POLL_AT_MOST = 100, 5000 -- when those with exits of their own look again, if nothing tells

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
                local all_exits = exits[line.pool]
                if waiting > 0 and all_exits and all_exits[1] and call('SISMEMBER', base .. 'held', number) == 0 then
                    found[#found + 1] = {line = line, all_exits = all_exits, exits = all_exits, private = own[line.pool],
                                         waiting = waiting, order = preference + math.random()}
                end
            end
        end
    end
    table.sort(found, function(one, other) return one.order < other.order end)
    return found, left
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

-- Visit sites of a line, and write down when each is to be visited again: when it may be, or all at the moment `again`.
-- Answers when the first of them may be visited; nil = none that has anything left.
local function visit_all(place, names, is_new, want, horizon, again)
    local line, later, over, size, met, first = place.line, {}, {}, 0, 0, nil
    load_sites(names)
    load_queues(line.number, names)
    for index = 1, #names do
        local name = names[index]
        local due = visit(place, name, want, horizon, is_new[index])
        if is_new[index] then
            met = met + 1
            if due then
                change_queue(line.number, name)
            end
        end
        if due then
            later[size + 1], later[size + 2] = texts[again or due], name
            size, first = size + 2, first and first < due and first or due
        else
            over[#over + 1] = name
        end
        if granted_count >= want or not place.exits[1] then
            break
        end
    end
    count_grants(line)
    many('ZADD', base .. 'd:' .. line.number, later)
    many('ZREM', base .. 'd:' .. line.number, over)
    forget_new(line.number, met)
    return first
end

-- Claim from one line.
local function draw(place, want, horizon)
    for _ = 1, ROUNDS do
        local names, is_new = find_due(place.line.number, horizon, want - granted_count)
        if not names[1] then
            return
        end
        visit_all(place, names, is_new, want, horizon)
        if granted_count >= want or not place.exits[1] then
            return
        end
    end
end

-- Claim from one line by exits that others do not have: for them the site may be free now, so it stays due. A bounded
-- number of sites is looked at, those first that nobody has looked at for longest.
local function draw_by_own(place, want, horizon)
    local most = 4 * want + 64
    local names, is_new = find_due(place.line.number, horizon, most)
    if names[1] then
        local first = visit_all(place, names, is_new, want, horizon, now) or now + POLL_AT_MOST
        place.wake = #names == most and now + POLL_AT_LEAST or max(min(first, now + POLL_AT_MOST), now + 1)
    end
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
    write_line_counters()
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
    keep_leases()
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
