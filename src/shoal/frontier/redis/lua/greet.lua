-- Who asks: wk what a worker is, ws when it was last seen, wm:<machine> who is on a machine, wl:<worker> its leases.
local function greet(worker)
    local id = worker[1]
    if call('ZADD', base .. 'ws', now, id) == 1 then
        call('HSET', base .. 'wk', id, pack(worker))
        call('SADD', base .. 'wm:' .. worker[2], id)
    end
end
