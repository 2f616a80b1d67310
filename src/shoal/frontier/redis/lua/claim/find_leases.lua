-- needs: prelude
-- Some of the leases that these workers hold, and where to look on; 0 = that was all. For when a worker is found dead, or
-- did not hear what it was granted.
local wanted, found = {}, {}
for _, worker in ipairs(ask[4].workers) do
    wanted[worker] = true
end
local answer = call('HSCAN', base .. 'lease', ask[4].cursor, 'COUNT', 1000)
for index = 1, #answer[2], 2 do
    local _, token, worker, run = unpack_some(answer[2][index + 1], 3, 0)
    if wanted[worker] then
        found[#found + 1] = {worker, call('HGET', base .. 'r:' .. run, 'id'), answer[2][index], token}
    end
end
return {answer[1], found}
