-- needs: prelude exit_health
-- What is known of exits: the book, how well they do (failures, until when each is left alone), and the sites that each may
-- not visit now.
local AT_MOST = 100
local bans = {}
for _, exit in ipairs(call('ZRANGEBYSCORE', base .. 'bx', '(' .. text(now), '+inf')) do
    local sites = call('ZRANGEBYSCORE', base .. 'b:' .. exit, '(' .. text(now), '+inf', 'WITHSCORES', 'LIMIT', 0, AT_MOST)
    for index = 1, #sites, 2 do
        bans[#bans + 1] = {exit, sites[index], tonumber(sites[index + 1])}
    end
end
return {call('HGETALL', base .. 'ex'), pack(known_exits.describe()), pack(bans)}
