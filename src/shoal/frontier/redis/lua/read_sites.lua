-- needs: prelude sites queue
-- Some of the sites that have tasks, and where to look on; 0 = that was all.
-- Each: name, delay, waiting, leased, when it may next be visited, rate limits in a row.
local answer, found = call('HSCAN', base .. 'site', ask[4].cursor, 'COUNT', 500), {}
for index = 1, #answer[2], 2 do
    local name, site = answer[2][index], read_record(answer[2][index + 1])
    if not is_idle(site) then
        local live, penalty, next_at, waiting = 0, 0, nil, site[ASIDE]
        for at = SLOTS, #site, SLOT_SIZE do
            if site[at] ~= WHOLE_SITE then
                local free_at = slot_free_at(site, at, pace_of(site))
                live, penalty = live + site[at + S_LIVE], max(penalty, site[at + S_PENALTY])
                next_at = next_at and min(next_at, free_at) or free_at
            end
        end
        local site_delay = rules_of(site).site_delay
        if site_delay > 0 then
            next_at = max(next_at or 0, site[slot_of(site, WHOLE_SITE) + S_BEGUN] + site_delay)
        end
        local known = site[LINES]
        for _, line in ipairs(type(known) == 'table' and known or {known ~= 0 and known or nil}) do
            waiting = waiting + ready_in(queue_of(line, name))
        end
        found[#found + 1] = {name, pace_of(site), waiting, live, next_at or 0, penalty}
    end
end
return '\146' .. pack(answer[1], found)
