-- needs: prelude sites site_queue
-- How many ready tasks of a site and line come before one of this priority and number.
local question = ask[4]
local priority, id, line, name = question.priority, question.id, question.line, question.site
local queue, ahead = queue_of(line, name), 0
for at = FIRST, #queue do
    local _, other, others = unpack_some(queue[at], 2, 0)
    if others > priority or (others == priority and other < id) then
        ahead = ahead + 1
    end
end

-- Lists are in order, so that half of what is left can be passed over with each look.
local function count_below(key, length)
    local low, high = 0, length
    while low < high do
        local middle = floor((low + high) / 2)
        local entry = call('LINDEX', key, middle)
        local _, other = unpack_some(entry, 1, 0)
        if other < id then
            low = middle + 1
        else
            high = middle
        end
    end
    return low
end

local over = queue[OVER]
for at = 1, over ~= 0 and #over or 0, GROUP do
    local key = overflow_key(line, name, over[at], over[at + 4])
    if over[at] > priority then
        ahead = ahead + over[at + 1]
    elseif over[at] == priority then
        ahead = ahead + (over[at + 4] and call('ZCOUNT', key, '-inf', '(' .. text(id)) or count_below(key, over[at + 1]))
    end
end
return ahead
