-- needs: prelude
-- Find the store, or make it if that is wanted. Answers its version and partitions, and whether it was
-- made just now; false if there is none.
local known = call('HMGET', base .. 'meta', 'version', 'partitions')
if not known[1] then
    if not ask[4].create then
        return false
    end
    call('HSET', base .. 'meta', 'version', ask[4].version, 'partitions', ask[4].partitions)
    return {ask[4].version, ask[4].partitions, 1}
end
return {tonumber(known[1]), tonumber(known[2]), 0}
