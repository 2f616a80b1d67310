-- Forgetting slots that say nothing any more: of exits that nobody uses, at sites that nobody visits.
local STRETCH, KEPT_AT_REST = 50, {{KEPT_AT_REST}} -- the first: how many sites one sweep looks at, about

-- Answers if there were any.
local function forget_slots_of(site, before)
    local pace, size, kept = pace_of(site), #site, SLOTS
    for at = SLOTS, size, SLOT_SIZE do
        local resting = site[at + S_LIVE] == 0 and site[at + S_USED] < before and site[at + S_BLOCKED] < before
            and site[at + S_BEGUN] + pace < before and site[at] ~= WHOLE_SITE and not limits.knows(site, site[at])
        if not resting then
            if kept < at then
                for offset = 0, SLOT_SIZE - 1 do
                    site[kept + offset] = site[at + offset]
                end
            end
            kept = kept + SLOT_SIZE
        end
    end
    for index = size, kept, -1 do
        site[index] = nil
    end
    return kept <= size
end

-- The next stretch of sites; all who sweep go on from where the last one was.
local function forget_slots()
    local answer = call('HSCAN', base .. 'site', call('HGET', base .. 'meta', 'looked_at') or 0, 'COUNT', STRETCH)
    call('HSET', base .. 'meta', 'looked_at', answer[1])
    for index = 1, #answer[2], 2 do
        local name, before = answer[2][index], now - KEPT_AT_REST
        if sites[name] == nil and not packed_sites[name] then
            packed_sites[name] = answer[2][index + 1]
        end
        local site = known_site(name)
        local forgot = limits.forget(site, before)
        if forget_slots_of(site, before) or forgot then
            changed_sites[name] = true
        end
    end
end
