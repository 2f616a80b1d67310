-- needs: prelude
-- A run that the first partition knows and this one does not: its fields, as they are there.
local fields = ask[4].fields
local known = call('HGET', base .. 'runs', ask[4].run)
if not known then
    call('HSET', base .. 'runs', ask[4].run, ask[4].number)
    call('HSET', base .. 'r:' .. ask[4].number, unpack(fields))
    call('HDEL', base .. 'r:' .. ask[4].number, 'first_item', 'first_task')
end
return true
