-- needs: prelude
-- How many leases are out by each exit, of some of them, and where to look on; 0 = that was all.
local counts, found = {}, {}
local answer = call('HSCAN', base .. 'lease', ask[4].cursor, 'COUNT', 1000)
for index = 2, #answer[2], 2 do
    local _, _, _, _, _, exit = unpack_some(answer[2][index], 5, 0)
    counts[exit] = (counts[exit] or 0) + 1
end
for exit, number in pairs(counts) do
    found[#found + 1] = {exit, number}
end
return {answer[1], found}
