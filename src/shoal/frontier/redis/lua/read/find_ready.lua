-- needs: prelude text_search runs_and_lines sites site_queue
-- Where tasks of a site are ready: how many of its tasks wait aside; and for each line its number, lane and pool, those of
-- its first tasks that contain what is looked for, and the overflow behind them: priority, length, if it is a sorted set.
local site, found = known_site(ask[4].site), {}
if not site then
    return {0, found}
end
for _, number in ipairs(lines_of(site)) do
    local line, queue, hits, groups = line_of(number), queue_of(number, ask[4].site), {}, {}
    for at = FIRST, #queue do
        if mentions(queue[at], 1) then
            hits[#hits + 1] = queue[at]
        end
    end
    local over = queue[OVER]
    for at = 1, over ~= 0 and #over or 0, GROUP do
        groups[#groups + 1] = {over[at], over[at + 1], over[at + 4] and 1 or 0}
    end
    found[#found + 1] = {number, line.lane, line.pool, hits, groups}
end
return {site[ASIDE], found}
