-- needs: prelude books
-- A parcel has arrived: it is forgotten here. Answers the runs that have nothing left here.
local serial = ask[4].serial
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
return pack(close_books())
