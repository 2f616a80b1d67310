-- needs: prelude
-- The callbacks of jobs that have ended, those that came first first.
local found = {}
for index, number in ipairs(call('ZRANGE', base .. 'jc', 0, ask[4].most - 1)) do
    found[index] = {call('HGET', base .. 'r:' .. number, 'id'), call('HGET', base .. 'j:' .. number, 'callback')}
end
return found
