-- needs: prelude
-- Notes of a stream after a number: the number of the last one, and what they say.
local found, last, bodies = call('XRANGE', base .. 'n:' .. ask[4].stream, text(ask[4].cursor + 1), '+', 'COUNT', ask[4].most), 0, {}
for index, row in ipairs(found) do
    last = tonumber(string.match(row[1], '^%d+'))
    bodies[index] = row[2][2]
end
return {last, bodies}
