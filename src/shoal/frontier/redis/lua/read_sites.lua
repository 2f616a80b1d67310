-- needs: prelude sites queue
-- Some of the sites that have tasks, and where to look on; 0 = that was all.
-- Each: name, delay, waiting, leased, when it may next be visited, rate limits in a row.
local answer, found = call('HSCAN', base .. 'site', ask[4].cursor, 'COUNT', 500), {}
for index = 1, #answer[2], 2 do
    local name, site = answer[2][index], read_record(answer[2][index + 1])
    if not is_idle(site) then
        local live, penalty, next_at, waiting = 0, 0, nil, site[ASIDE]
        for at = SLOTS, #site, SLOT_SIZE do
            local free_at = slot_free_at(site, at)
            live, penalty = live + site[at + S_LIVE], max(penalty, site[at + S_PENALTY])
            next_at = next_at and min(next_at, free_at) or free_at
        end
        if site[SITE_DELAY] > 0 then
            next_at = max(next_at or 0, site[BEGUN] + site[SITE_DELAY])
        end
        local known = site[LINES]
        for _, line in ipairs(type(known) == 'table' and known or {known}) do
            waiting = waiting + ready_in(queue_of(line, name))
        end
        found[#found + 1] = {name, max(site[DELAY], site[CRAWL]), waiting, live, next_at or 0, penalty}
    end
end
return '\146' .. pack(answer[1], found)
