-- needs: prelude
-- The keys that a run has seen, of some of the sets.
local found = {}
for index, bucket in ipairs(ask[4].buckets) do
    found[index] = call('SMEMBERS', base .. 's:' .. ask[4].number .. ':' .. bucket)
end
return found
