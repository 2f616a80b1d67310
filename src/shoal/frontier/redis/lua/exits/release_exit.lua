-- needs: prelude sites rate_limits exit_health
-- Undo bans, rate limits and quarantine of an exit: of one site; or of some hundred sites, and of the exit itself. Answers
-- if there are more. Clocks stay, and so do leases that were lost.
local AT_MOST = 500
local question = ask[4]
local key = base .. 'b:' .. question.exit
local names = question.site and {question.site} or call('ZRANGE', key, 0, AT_MOST - 1)
load_sites(names)
for _, name in ipairs(names) do
    local site = known_site(name)
    if site and limits.lift(site, question.exit) then
        changed_sites[name] = true
        look_at(name, now)
    end
end
move_visits()
close_sites()
many('ZREM', key, names)
if not question.site then
    known_exits.release(question.exit)
    known_exits.close()
end
if call('EXISTS', key) == 0 then
    call('ZREM', base .. 'bx', question.exit)
end
return #names == AT_MOST
