-- needs: prelude
-- Stored batches of items of jobs, at most so many of each; false where there is no such job, or its time is over.
local found = {}
for index, id in ipairs(ask[4].ids) do
    local number = call('HGET', base .. 'runs', id)
    local row = number and call('HMGET', base .. 'r:' .. number, 'results_until', 'rules')
    found[index] = row and row[2] and cmsgpack.unpack(row[2]).job and (not row[1] or tonumber(row[1]) > now)
        and call('LRANGE', base .. 'it:' .. number, 0, ask[4].most - 1) or false
end
return found
