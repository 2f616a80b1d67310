-- needs: prelude
-- Stored batches of items from a position on; false if there is no such run. Answers the position of the first, and them.
local number = call('HGET', base .. 'runs', ask[4].run)
if not number then
    return false
end
local row = call('HMGET', base .. 'r:' .. number, 'results_until', 'first_item')
local first = tonumber(row[2] or 0)
if row[1] and tonumber(row[1]) <= now then
    return {first, {}}
end
local from = max(ask[4].cursor - first, 0)
return {first + from, call('LRANGE', base .. 'it:' .. number, from, from + ask[4].most - 1)}
