-- needs: prelude
-- Keep a value for a while. The server forgets it by itself; the moment inside it is the one that counts.
local value = ask[4]
call('SET', base .. 'k:' .. value.key, pack(now + value.ttl) .. value.body, 'PX', max(1, value.ttl))
return true
