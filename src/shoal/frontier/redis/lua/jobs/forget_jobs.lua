-- needs: prelude
-- Nothing is left of jobs that have been gone for long.
for _, id in ipairs(ask[4].ids) do
    local number = call('HGET', base .. 'runs', id)
    if number then
        local job = call('HMGET', base .. 'j:' .. number, 'owner', 'key')
        if job[1] then
            call('ZREM', base .. 'jo:' .. job[1], number)
            if job[2] then
                call('HDEL', base .. 'jk', job[1] .. '\0' .. job[2])
            end
        end
        for _, kind in ipairs({'it:', 'dead:', 'dz:', 'a:', 'h:', 'g:', 'c:', 'j:', 'r:'}) do
            call('UNLINK', base .. kind .. number)
        end
        call('UNLINK', base .. 's:' .. number .. ':j', base .. 'e:' .. number .. ':j', base .. 'er:' .. number)
        call('ZREM', base .. 'jobs', number)
        call('ZREM', base .. 'res', number)
        call('ZREM', base .. 'jg', number)
        call('SREM', base .. 'cancelled', number)
        call('SREM', base .. 'thaw', number)
        call('SREM', base .. 'spread', id)
        call('SREM', base .. 'revived', id)
        call('HDEL', base .. 'jv', id)
        call('HDEL', base .. 'runs', id)
    end
end
return true
