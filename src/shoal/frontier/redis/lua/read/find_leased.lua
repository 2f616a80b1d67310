-- needs: prelude text_search runs_and_lines
-- Tasks of a site that are leased and contain what is looked for, of some of all; and where to look on, 0 = that was all.
-- Each: line, lane, pool, the task, its worker, its exit, and when the lease runs out.
local answer, found = call('HSCAN', base .. 'lease', ask[4].cursor, 'COUNT', 1000), {}
for index = 1, #answer[2], 2 do
    local lease = answer[2][index + 1]
    local after, _, worker, _, number, exit, name = unpack_some(lease, 6, 0)
    if name == ask[4].site and after > 0 and mentions(lease, after) then
        local line = line_of(number)
        found[#found + 1] = {number, line.lane, line.pool, cut(lease, after + 1), worker, exit,
                             tonumber(call('ZSCORE', base .. 'le', answer[2][index]) or 0)}
    end
end
return {answer[1], found}
