-- needs: prelude
-- Parcels that have not been delivered, those of these numbers or the oldest: number, and target, run id and tasks.
local found = {}
for _, serial in ipairs(ask[4].serials or call('ZRANGE', base .. 'outz', 0, ask[4].most - 1)) do
    local parcel = call('HGET', base .. 'out', serial)
    if parcel then
        found[#found + 1] = {serial, parcel}
    end
end
return found
