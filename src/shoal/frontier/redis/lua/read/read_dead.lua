-- needs: prelude runs_and_lines
-- Dead letters of a run after a task number, by task number, with the lanes they were in (or lane, \31 and pool, if
-- those are asked for); false if there is no such run.
local number = call('HGET', base .. 'runs', ask[4].run)
if not number then
    return false
end
local ids = call('ZRANGEBYSCORE', base .. 'dz:' .. number, '(' .. ask[4].after, '+inf', 'LIMIT', 0, ask[4].most)
local letters = fetch(base .. 'dead:' .. number, ids)
local lanes = {}
for index, letter in ipairs(letters) do
    local _, _, _, line = unpack_some(letter, 3, 0)
    local found = line_of(line)
    lanes[index] = ask[4].with_pools and found.lane .. '\31' .. found.pool or found.lane
end
return {letters, lanes}
