-- needs: prelude text_search runs_and_lines
-- Dead letters of a run that contain what is looked for, of some of all; and where to look on, 0 = that was all.
-- Each: line, lane, pool, and the letter.
local answer, found = call('HSCAN', base .. 'dead:' .. ask[4].run, ask[4].cursor, 'COUNT', 1000), {}
for index = 2, #answer[2], 2 do
    local letter = answer[2][index]
    if mentions(letter, 1) then
        local _, _, _, number = unpack_some(letter, 3, 0)
        local line = line_of(number)
        found[#found + 1] = {number, line.lane, line.pool, letter}
    end
end
return {answer[1], found}
