-- needs: prelude cache_entries
-- The values under these keys, each false where there is none or its time is over.
local found = {}
for index, key in ipairs(ask[4].keys) do
    found[index] = find_entry(key) or false
end
return found
