-- needs: prelude
-- One run with its counters, by id or by number; false if there is none. Answers the moment, what it is, its counters.
local number = ask[4].number or call('HGET', base .. 'runs', ask[4].run)
local row = number and call('HGETALL', base .. 'r:' .. number)
if not row or #row == 0 then
    return false
end
local counts = call('HGETALL', base .. 'c:' .. number)
return {now, row, counts, tonumber(number)}
