-- needs: prelude
-- These callbacks have been seen to.
for _, id in ipairs(ask[4].ids) do
    local number = call('HGET', base .. 'runs', id)
    if number then
        call('HDEL', base .. 'j:' .. number, 'callback')
        call('ZREM', base .. 'jc', number)
    end
end
return true
