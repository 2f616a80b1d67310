-- needs: prelude
-- The ids of the newest jobs, of one owner or of all, whose number is below `before` (nil = any).
local key = base .. (ask[4].owner and 'jo:' .. ask[4].owner or 'jobs')
local last = ask[4].before and '(' .. text(ask[4].before) or '+inf'
local found = {}
for index, number in ipairs(call('ZREVRANGEBYSCORE', key, last, '-inf', 'LIMIT', 0, ask[4].most)) do
    found[index] = call('HGET', base .. 'r:' .. number, 'id')
end
return found
