-- needs: prelude sites rate_limits delayed_tasks
-- Undo rate limits and bans of a site and of all its slots, and then, some hundred at a time, the waits of its tasks that
-- were set back. Its pace stays. Answers where to look on ('0' = that was all); nothing = there is no such site.
local AT_MOST = 1000
local name, cursor = ask[4].site, ask[4].cursor
local site = known_site(name)
if not site then
    return false
end
if cursor == '0' then
    for at = SLOTS, #site, SLOT_SIZE do
        local exit = site[at]
        limits.lift(site, exit)
        call('ZREM', base .. 'b:' .. exit, name)
        if call('EXISTS', base .. 'b:' .. exit) == 0 then
            call('ZREM', base .. 'bx', exit)
        end
    end
    changed_sites[name] = true
    look_at(name, now)
    move_visits()
end
local answer = call('HSCAN', base .. 'aside', cursor, 'COUNT', AT_MOST)
for index = 1, #answer[2], 2 do
    local _, _, line, of, entry = unpack_some(answer[2][index + 1], 4, 0)
    if of == name and string.find(entry, '"set_back_since":', 1, true) then
        call('ZADD', base .. 'w:' .. line, 'XX', 'LT', now, padded(tonumber(answer[2][index])))
    end
end
close_sites()
return answer[1]
