-- needs: prelude
-- How pages of a run ended that were not done, of some of the hashes: name, how, when, why and the URL of each (false =
-- nothing is said), and if that was brought from another store.
local found, reasons = {}, {}
local known = call('HGETALL', base .. 'er:' .. ask[4].number)
for index = 1, #known, 2 do
    reasons[tonumber(known[index + 1])] = known[index]
end
for _, bucket in ipairs(ask[4].buckets) do
    local rows = call('HGETALL', base .. 'e:' .. ask[4].number .. ':' .. bucket)
    for index = 1, #rows, 2 do
        local _, how, at, reason, url, brought = unpack_some(rows[index + 1], 5, 0)
        found[#found + 1] = {rows[index], how, text(at), reasons[reason] or reason ~= 0 and reason or false, url,
                              brought and 1 or 0}
    end
end
return found
