-- needs: prelude sites rate_limits site_queue describe_site
-- One site as readers see it, or nil if no task of it was ever accepted; and its slots that were used or limited: exit,
-- when it may next be used, until when it is blocked, live leases, rate limits in a row, if it is being probed, and what
-- was said ('' = nothing).
local site, slots = known_site(ask[4].site), {}
if not site then
    return pack({false, slots})
end
for at = SLOTS, #site, SLOT_SIZE do
    local exit, over, is_probing, cause = site[at], limits.describe(site, site[at])
    if exit ~= WHOLE_SITE and (site[at + S_USED] > 0 or over) then
        slots[#slots + 1] = {exit, slot_free_at(site, at, pace_of(site)), max(site[at + S_BLOCKED], over or 0),
                             site[at + S_LIVE], limits.penalty_of(site, at), is_probing, cause}
    end
end
return pack({site[RULES] ~= '' and describe(ask[4].site, site), slots})
