-- needs: prelude text_search runs_and_lines
-- Tasks of a site that wait aside and contain what is looked for, of some of all; and where to look on, 0 = that was all.
-- Each: line, lane, pool, the task, and its time (0 = it waits for its paused run).
local answer, found = call('HSCAN', base .. 'aside', ask[4].cursor, 'COUNT', 1000), {}
for index = 1, #answer[2], 2 do
    local _, _, number, name, entry = unpack_some(answer[2][index + 1], 4, 0)
    if name == ask[4].site and mentions(entry, 1) then
        local line = line_of(number)
        local member = string.format('%017.0f', tonumber(answer[2][index]))
        found[#found + 1] = {number, line.lane, line.pool, entry,
                             tonumber(call('ZSCORE', base .. 'w:' .. number, member) or 0)}
    end
end
return {answer[1], found}
