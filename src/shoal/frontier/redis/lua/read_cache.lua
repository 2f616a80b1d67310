-- needs: prelude
-- The value under a key, unless its time is over; false if there is none.
local stored = call('GET', base .. 'k:' .. ask[4].key)
if not stored then
    return false
end
local next_at, expires = unpack_some(stored, 1, 0)
if expires <= now then
    return false
end
return next_at < 0 and '' or cut(stored, next_at + 1)
