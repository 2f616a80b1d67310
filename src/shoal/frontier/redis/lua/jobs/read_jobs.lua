-- needs: prelude
-- Jobs by id: what this partition counts of each (`counters`, as text), and the groups of the tasks that have not ended.
-- The first partition tells besides what each is, and its place; false where there is none.
-- Answers the moment, and all of that in the order of the ids.
local COUNTERS = ask[4].counters
local found = {}

local function describe(number)
    local row = call('HMGET', base .. 'r:' .. number, 'id', 'scraper', 'state', 'created_at', 'ended_at', 'results_until',
                     'queue')
    local job = call('HMGET', base .. 'j:' .. number, 'owner', 'groups', 'error', 'gone')
    if not job[1] then
        return false
    end
    local rank = not row[5] and call('ZRANK', base .. 'jq:' .. row[7], number)
    return {row[1], tonumber(number), row[2], row[3], tonumber(row[4]), tonumber(row[5]) or false, tonumber(row[6]) or false,
            rank and rank + 1 or 0, job[1],
            job[2] or '[]', job[3], job[4] and true or false}
end

for index, id in ipairs(ask[4].ids) do
    local number = call('HGET', base .. 'runs', id)
    local known = number and (partition > 0 or describe(number))
    if known then
        local counts = call('HMGET', base .. 'c:' .. number, unpack(COUNTERS))
        for place = 1, #COUNTERS do
            counts[place] = counts[place] or '0'
        end
        found[index] = {known, counts, call('HKEYS', base .. 'g:' .. number)}
    else
        found[index] = false
    end
end
return pack({now, found})
