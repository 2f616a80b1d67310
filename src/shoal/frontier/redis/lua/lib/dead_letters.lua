-- Dead letters: dead:<run> holds what they were and why, dz:<run> their order.
local function bury(run, line, name, entry, reason, attempts, crashes)
    local next_at, id, priority, number, expires, tried, crashed = unpack_some(entry, 6, 0)
    local rest = cut(entry, next_at + 1)
    call('HSET', base .. 'dead:' .. run.number, id,
         pack(id, name, line, tried + attempts, crashed + crashes, now, reason, priority) .. rest)
    call('ZADD', base .. 'dz:' .. run.number, id, id)
    count(run, 'dead', 1)
end
