-- needs: prelude
-- What has come in of an arriving run here: tasks (also if they have expired since), dead letters, batches of items.
local number = call('HGET', base .. 'runs', ask[4].run)
local row = call('HMGET', base .. 'c:' .. number, 'waiting', 'expired')
return {tonumber(row[1] or 0) + tonumber(row[2] or 0), call('ZCARD', base .. 'dz:' .. number),
        call('LLEN', base .. 'it:' .. number), tonumber(number)}
