-- needs: prelude
-- From now on the store is of this version; never back to an older one.
local known = tonumber(call('HGET', base .. 'meta', 'version'))
if known < ask[4].version then
    call('HSET', base .. 'meta', 'version', ask[4].version)
end
