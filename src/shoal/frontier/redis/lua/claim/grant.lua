-- Leases: what one does to its slot, how it is kept, and how it is answered.
local granted, granted_count = {''}, 0 -- the answer in pieces, which the client joins: the first is for what is no lease

local grant, grant_plainly, count_grants, keep_leases = (function() -- because Lua bears 200 local names at a time, and is slow to find many from inside functions
local LEASE = '\220\0\20' -- a lease is answered as a msgpack list of 20: first its terms, then all that is kept
local KEEPS_SORTED = string.rep('-', 65)
local format = string.format
local leases, lease_times, granted_to, terms = {}, {}, {}, {}

-- How late a request may start where several leases share one clock: as shoal.core.politeness.start_window.
local function start_window(pace)
    return max({{START_WINDOW_LEAST}}, min(floor(pace / {{START_WINDOW_SHARE}}), {{START_WINDOW_MOST}}))
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

-- The terms of a lease, packed. Most leases of a claim have the same: these are packed once.
local function pack_terms(start_at, start_by, expires, pace, alone, penalty, failures)
    if not (terms[1] == start_at and terms[2] == start_by and terms[3] == expires and terms[4] == pace
            and terms[5] == alone and terms[6] == penalty and terms[7] == failures) then
        terms = {start_at, start_by, expires, pace, alone, penalty, failures}
        terms.packed = LEASE .. pack(start_at, start_by, expires, pace, alone, penalty, failures)
    end
    return terms.packed
end

local function next_token()
    granted_count = granted_count + 1
    return cut(ask.tokens, 9 * granted_count - 8, 9 * granted_count)
end

-- Write a lease down: as it is kept, and as it is answered.
local function write_lease(line, name, run, exit, token, expires, entry, id, packed_terms)
    local whose = line.whose
    if not whose or line.whose_run ~= run or line.whose_exit ~= exit then
        whose = pack(ask.worker[1], run.number, line.number, exit)
        line.whose, line.whose_run, line.whose_exit = whose, run, exit
    end
    local member, lease = format('%.0f', id), token .. whose .. heads[#name] .. name .. entry
    local last = 2 * granted_count
    lease_times[last - 1], lease_times[last] = texts[expires], member
    leases[last - 1], leases[last] = member, line.auto_ack and cut(lease, 1, -1 - #entry) or lease
    granted[last], granted[last + 1] = packed_terms, lease
    granted_to[run] = (granted_to[run] or 0) + 1
end

local function grant(line, name, site, at, rules, pace, run, entry, id)
    local token, exit, expires, not_before, penalty, failures = next_token(), site[at], now + rules.lease, now, 0, 0
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
    write_lease(line, name, run, exit, token, expires, entry, id,
                pack_terms(start_at, start_by, expires, pace, alone, penalty, failures))
end

-- A lease by the only slot of a site, which nothing but its own clock holds up. Answers its token.
local function grant_plainly(line, name, run, exit, rules, start_at, entry, id)
    local token, expires, at_once = next_token(), now + rules.lease, rules.terms_at_once
    if start_at > now or not at_once then
        at_once = pack_terms(start_at, start_at + floor(rules.lease / 2), expires, rules.delay, true, 0, 0)
        rules.terms_at_once = start_at == now and at_once or nil
    end
    write_lease(line, name, run, exit, token, expires, entry, id, at_once)
    return token
end

-- Count what was granted from a line, once for each run.
local function count_grants(line)
    for run, number in pairs(granted_to) do
        move(run, line, -number, number)
        count(run, 'waiting', -number)
        count(run, line.auto_ack and 'done' or 'leased', number)
        granted_to[run] = nil
    end
end

local function keep_leases()
    hold_leases(ask.worker[1], granted_count)
    many('HSET', base .. 'lease', leases)
    if lease_times[1] then
        -- A long member keeps Redis from storing few leases as a list, in which everything is searched from the start.
        lease_times[#lease_times + 1] = '+inf'
        lease_times[#lease_times + 1] = KEEPS_SORTED
        many('ZADD', base .. 'le', lease_times)
    end
end

return grant, grant_plainly, count_grants, keep_leases
end)()
