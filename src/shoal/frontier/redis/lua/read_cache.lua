-- needs: prelude
-- The values under these keys, each false where there is none or its time is over.
local found = {}
for index, key in ipairs(ask[4].keys) do
    local stored = call('GET', base .. 'k:' .. key)
    found[index] = false
    if stored then
        local next_at, expires = unpack_some(stored, 1, 0)
        if expires > now then
            found[index] = next_at < 0 and '' or cut(stored, next_at + 1)
        end
    end
end
return found
