-- needs: prelude runs_and_lines
-- Parcels have arrived: they are forgotten here. Answers the runs that have nothing left here.
for _, serial in ipairs(ask[4].serials) do
    local parcel = call('HGET', base .. 'out', serial)
    if parcel then
        call('HDEL', base .. 'out', serial)
        call('ZREM', base .. 'outz', serial)
        local _, _, id = unpack_some(parcel, 2, 0)
        local run = find_run(id)
        if run then
            count(run, 'outbox', -1)
        end
    end
end
return pack(write_counters())
