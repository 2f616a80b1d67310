-- needs: prelude
-- Stored batches of items of jobs, at most so many of each, and their bytes; false where there is no such job, its time is
-- over, or they are too many bytes.
local found = {}
for index, id in ipairs(ask[4].ids) do
    local number = call('HGET', base .. 'runs', id)
    local row = number and call('HMGET', base .. 'r:' .. number, 'results_until', 'rules')
    local batches, size = false, 0
    if row and row[2] and cmsgpack.unpack(row[2]).job and (not row[1] or tonumber(row[1]) > now) then
        batches = {}
        repeat
            local some = call('LRANGE', base .. 'it:' .. number, #batches, min(#batches + 16, ask[4].most) - 1)
            for _, batch in ipairs(some) do
                batches[#batches + 1] = batch
                size = size + #batch
            end
        until #some < 16 or #batches >= ask[4].most or size > ask[4].bytes[index]
        if size > ask[4].bytes[index] then
            batches = false
        end
    end
    found[index] = {size, batches}
end
return found
