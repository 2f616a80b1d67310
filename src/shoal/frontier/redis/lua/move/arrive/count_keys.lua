-- needs: prelude
-- How many keys a run has seen, of some of the sets.
local total = 0
for _, bucket in ipairs(ask[4].buckets) do
    total = total + call('SCARD', base .. 's:' .. ask[4].number .. ':' .. bucket)
end
return total
