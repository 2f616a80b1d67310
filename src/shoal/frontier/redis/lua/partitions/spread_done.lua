-- needs: prelude
-- All partitions know how a run is since this version of it.
local number = call('HGET', base .. 'runs', ask[4].run)
if number and tonumber(call('HGET', base .. 'r:' .. number, 'version') or 0) == ask[4].version then
    call('SREM', base .. 'spread', ask[4].run)
end
return true
