-- needs: prelude
-- Some of the tasks of a run that wait aside (in a:<run> or h:<run>), and where to look on; 0 = that was all.
-- Each: line, site, entry, and when its time comes (0 = it only waits for its run).
local question = ask[4]
local answer, found = call('SSCAN', base .. question.kind .. ':' .. question.number, question.cursor, 'COUNT', 500), {}
for index, row in ipairs(fetch(base .. 'aside', answer[2])) do
    if row then
        local _, _, line, name, entry = unpack_some(row, 4, 0)
        local at = call('ZSCORE', base .. 'w:' .. line, string.format('%017.0f', tonumber(answer[2][index])))
        found[#found + 1] = {line, name, entry, at or '0'}
    end
end
return {answer[1], found}
