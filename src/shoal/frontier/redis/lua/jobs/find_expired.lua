-- needs: prelude
-- Jobs whose results have had their time, and jobs that have been gone for long enough to be forgotten: ids.
local function ids(key, until_)
    local found = {}
    for index, number in ipairs(call('ZRANGEBYSCORE', base .. key, '-inf', text(until_), 'LIMIT', 0, ask[4].most)) do
        found[index] = call('HGET', base .. 'r:' .. number, 'id')
    end
    return found
end
for _, queue in ipairs(call('SMEMBERS', base .. 'jqs')) do
    call('ZREMRANGEBYSCORE', base .. 'je:' .. queue, '-inf', text(now - ask[4].lately))
    if call('EXISTS', base .. 'je:' .. queue, base .. 'jq:' .. queue) == 0 then
        call('SREM', base .. 'jqs', queue)
    end
end
return {ids('jx', now), ids('jg', now - ask[4].remember)}
