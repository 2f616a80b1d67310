-- needs: prelude
-- The runs that have seen a key, by number; or `run` only, if it has.
local found = {}
local all = ask[4].run and {ask[4].run, call('HGET', base .. 'runs', ask[4].run)} or call('HGETALL', base .. 'runs')
for index = 2, #all, 2 do
    local seen = base .. 's:' .. (all[index] or '') .. ':'
    if all[index] and (call('SISMEMBER', seen .. ask[4].bucket, ask[4].key) == 1
            or call('SISMEMBER', seen .. 'j', ask[4].key) == 1) then
        found[#found + 1] = tonumber(all[index])
    end
end
return found
