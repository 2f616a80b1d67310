-- needs: prelude sites rate_limits
-- Some of the sites whose clocks may still matter, and where to look on; 0 = that was all.
-- Each: name, crawl delay, and of each slot exit, when it began, its limit, limits in a row, and when it was used.
local answer, found = call('HSCAN', base .. 'site', ask[4].cursor, 'COUNT', 500), {}
for index = 1, #answer[2], 2 do
    local site = read_record(answer[2][index + 1])
    local crawl = limits.crawl_delay_of(site)
    local matters, slots = crawl > 0, {}
    for at = SLOTS, #site, SLOT_SIZE do
        local begun, blocked, penalty = site[at + S_BEGUN], slot_free_at(site, at, 0), site[at + S_PENALTY]
        matters = matters or penalty > 0 or begun > ask[4].since or blocked > ask[4].since
        slots[#slots + 1] = {site[at], begun, blocked, penalty, site[at + S_USED]}
    end
    if matters then
        found[#found + 1] = {answer[2][index], crawl, slots}
    end
end
return '\146' .. pack(answer[1], found)
