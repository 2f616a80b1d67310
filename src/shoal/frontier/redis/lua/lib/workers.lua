-- Who asks: wk what a worker is, ws when it was last seen, wm:<machine> who is on a machine, wn how many leases each has.
local function greet(worker)
    local id = worker[1]
    local seen = tonumber(call('ZSCORE', base .. 'ws', id))
    if seen and seen <= now and seen > now - 500 then -- nothing is written for those who ask often and get nothing
        return
    end
    if call('ZADD', base .. 'ws', text(now), id) == 1 then
        call('HSET', base .. 'wk', id, pack(worker))
        call('SADD', base .. 'wm:' .. worker[2], id)
    end
end

local held = {}
local function hold_leases(worker, change)
    held[worker] = (held[worker] or 0) + change
end

local function close_workers()
    for worker, change in pairs(held) do
        if change ~= 0 then
            call('HINCRBY', base .. 'wn', worker, change)
        end
    end
    held = {}
end
