-- needs: prelude site_queue
-- Some of the ready tasks of a line, and where to look on; 0 = that was all. Each: site, the entries packed with it, and of
-- each overflow its priority and if it is a sorted set. `whole`: the overflows are answered with the entries, all of them.
local question = ask[4]
local answer, found = call('HSCAN', base .. 'q:' .. question.line, question.cursor, 'COUNT', 50), {}
for index = 1, #answer[2], 2 do
    local name, queue = answer[2][index], read_record(answer[2][index + 1])
    local entries, over, rest = {}, queue[OVER], {}
    for at = FIRST, #queue do
        entries[#entries + 1] = queue[at]
    end
    for at = 1, over ~= 0 and #over or 0, GROUP do
        local sorted = over[at + 4]
        if question.whole then
            local key = overflow_key(question.line, name, over[at], sorted)
            for _, entry in ipairs(call(sorted and 'ZRANGE' or 'LRANGE', key, 0, -1)) do
                entries[#entries + 1] = entry
            end
        else
            rest[#rest + 1] = {text(over[at]), sorted and 1 or 0}
        end
    end
    found[#found + 1] = {name, entries, rest}
end
return {answer[1], found}
