-- needs: prelude
-- The results of jobs go. The first partition decides, by whether their time is still over, and remembers that there were
-- such jobs. Answers the ids of those that went.
local gone = {}
for _, id in ipairs(ask[4].ids) do
    local number = call('HGET', base .. 'runs', id)
    local over = number and (partition > 0 or tonumber(call('ZSCORE', base .. 'jx', number) or now + 1) <= now)
    if over then
        for _, kind in ipairs({'it:', 'dead:', 'dz:', 'g:'}) do
            call('UNLINK', base .. kind .. number)
        end
        call('UNLINK', base .. 's:' .. number .. ':j', base .. 'e:' .. number .. ':j', base .. 'er:' .. number)
        call('HDEL', base .. 'r:' .. number, 'input')
        call('ZREM', base .. 'res', number)
        if partition == 0 then
            call('ZREM', base .. 'jx', number)
            call('ZREM', base .. 'jc', number)
            call('ZADD', base .. 'jg', text(now), number)
            call('HSET', base .. 'j:' .. number, 'gone', 1)
            call('HDEL', base .. 'j:' .. number, 'callback', 'error')
        end
        gone[#gone + 1] = id
    end
end
return gone
