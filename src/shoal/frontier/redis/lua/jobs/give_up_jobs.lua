-- needs: prelude
-- The first jobs of a queue, at most so many, that came `age` ago or earlier and have not ended, are told why they will be.
-- Answers their ids.
local found = {}
for _, number in ipairs(call('ZRANGE', base .. 'jq:' .. ask[4].queue, 0, ask[4].most - 1)) do
    local row = call('HMGET', base .. 'r:' .. number, 'id', 'created_at')
    if row[1] and tonumber(row[2]) <= now - ask[4].age then
        call('HSET', base .. 'j:' .. number, 'error', ask[4].reason)
        found[#found + 1] = row[1]
    end
end
return found
