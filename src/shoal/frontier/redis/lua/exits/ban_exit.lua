-- needs: prelude sites rate_limits exit_health
-- Leave by this exit no more for a while: to one site, or to any.
local question = ask[4]
local over = now + question.wait
if question.site then
    local site = site_of(question.site)
    slot_of(site, question.exit)
    limits.ban(question.site, site, question.exit, over)
    close_sites()
else
    known_exits.ban(question.exit, over)
    known_exits.close()
end
