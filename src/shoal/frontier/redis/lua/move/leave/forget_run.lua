-- needs: prelude
-- A run that was cancelled, and of which nothing waits, goes with all that belongs to it; its keys and endings went before.
local number = call('HGET', base .. 'runs', ask[4].run)
if number then
    for _, kind in ipairs({'it', 'dead', 'dz', 'er', 'a', 'h', 'c', 'r'}) do
        call('UNLINK', base .. kind .. ':' .. number)
    end
    for _, kind in ipairs({'cancelled', 'thaw'}) do
        call('SREM', base .. kind, number)
    end
    for _, kind in ipairs({'spread', 'revived'}) do
        call('SREM', base .. kind, ask[4].run)
    end
    call('ZREM', base .. 'res', number)
    call('HDEL', base .. 'runs', ask[4].run)
end
return true
