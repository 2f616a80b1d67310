-- needs: prelude runs_and_lines
-- Some of what workers have in hand, at most so many for each, and where to look on; 0 = that was all.
local found, shown = {}, {}
local answer = call('HSCAN', base .. 'lease', ask[4].cursor, 'COUNT', 1000)
for index = 1, #answer[2], 2 do
    local lease = answer[2][index + 1]
    local after, _, worker, run, line = unpack_some(lease, 4, 0)
    if not line_of(line).auto_ack then -- of those only the slot is left
        shown[worker] = (shown[worker] or 0) + 1
        if shown[worker] <= ask[4].most then
            found[#found + 1] = {worker, run_of(run).id, line_of(line).lane, cut(lease, after + 1)}
        end
    end
end
return {answer[1], found}
