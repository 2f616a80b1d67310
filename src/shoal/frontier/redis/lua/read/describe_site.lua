-- A site as readers see it: name, delay, waiting, leased, when it may next be visited, rate limits in a row, the delay
-- over all exits, until when the whole site is limited, if it is being probed, and what was said ('' = nothing).
-- `wanted`: only what is ready in these lines waits; nil = everything does.
local function describe(name, site, wanted)
    local live, penalty, next_at, waiting, pace = 0, 0, nil, wanted and 0 or site[ASIDE], pace_of(site)
    for at = SLOTS, #site, SLOT_SIZE do
        if site[at] ~= WHOLE_SITE then
            local free_at = slot_free_at(site, at, pace)
            live, penalty = live + site[at + S_LIVE], max(penalty, limits.penalty_of(site, at))
            next_at = next_at and min(next_at, free_at) or free_at
        end
    end
    local site_delay, over, is_probing, cause = rules_of(site).site_delay, limits.describe(site, WHOLE_SITE)
    if site_delay > 0 then
        next_at = max(next_at or 0, site[slot_of(site, WHOLE_SITE) + S_BEGUN] + site_delay)
    end
    for _, line in ipairs(lines_of(site)) do
        if not wanted or wanted[line] then
            waiting = waiting + ready_in(queue_of(line, name))
        end
    end
    return {name, pace, waiting, live, max(next_at or 0, limits.site_free_at(site)), penalty, site_delay, over or 0,
            is_probing, cause}
end
