-- needs: prelude runs_and_lines endings
-- How a page ended in a run, under each of its names where it is known: how, when, why and the URL (false = as asked for).
-- Before that, since when what stands in line has ended with its job; 0 = it has not.
local run, found = run_of(ask[4].run), {}
if not run then
    return pack({0, found})
end
for _, name in ipairs(ask[4].names) do
    local packed = call('HGET', endings.key(run, name), name)
    if packed then
        local _, how, at, reason, url = unpack_some(packed, 4, 0)
        if type(reason) == 'number' and reason > 0 then
            local reasons = call('HGETALL', base .. 'er:' .. run.number)
            for index = 1, #reasons, 2 do
                if tonumber(reasons[index + 1]) == reason then
                    reason = reasons[index]
                    break
                end
            end
        end
        found[#found + 1] = {how, at, reason ~= 0 and reason, url}
    end
end
return pack({run.emptied and tonumber(call('HGET', base .. 'r:' .. run.number, 'ended_at') or now) or 0, found})
