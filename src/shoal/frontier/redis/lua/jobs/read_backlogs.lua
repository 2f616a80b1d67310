-- needs: prelude
-- The jobs of each queue: how many have not ended, and how many have lately.
local found = {}
for _, queue in ipairs(call('SMEMBERS', base .. 'jqs')) do
    local unfinished = call('ZCARD', base .. 'jq:' .. queue)
    local ended = call('ZCOUNT', base .. 'je:' .. queue, '(' .. text(now - ask[4].lately), '+inf')
    if unfinished + ended > 0 then
        found[#found + 1] = {queue, unfinished, ended}
    end
end
return found
