-- needs: prelude sites limits queue describe
-- Some of the sites that have tasks, and where to look on; 0 = that was all.
local answer, found = call('HSCAN', base .. 'site', ask[4].cursor, 'COUNT', 500), {}
for index = 1, #answer[2], 2 do
    local site = read_record(answer[2][index + 1])
    if not is_idle(site) then
        found[#found + 1] = describe(answer[2][index], site)
    end
end
return '\146' .. pack(answer[1], found)
