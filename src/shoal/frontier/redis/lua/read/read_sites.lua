-- needs: prelude sites rate_limits site_queue describe_site
-- Some of the sites that have tasks (of a queue, if one is named), and where to look on; 0 = that was all.
local wanted = ask[4].queue and {} or nil
for _, line in ipairs(wanted and call('SMEMBERS', base .. 'ql:' .. ask[4].queue) or {}) do
    wanted[tonumber(line)] = true
end
local answer, found = call('HSCAN', base .. 'site', ask[4].cursor, 'COUNT', 500), {}
for index = 1, #answer[2], 2 do
    local site = read_record(answer[2][index + 1])
    if not is_idle(site) then
        local row = describe(answer[2][index], site, wanted)
        if not wanted or row[3] > 0 then
            found[#found + 1] = row
        end
    end
end
return '\146' .. pack(answer[1], found)
