-- What slows a site down: its pace, rate limits of a slot or of the whole site with the one request that goes first
-- afterwards, and bans, which are people's.
-- Where there is more than a crawl delay, LIMITS of a site is a list of that, the pace at which it does not suffer (0 =
-- none), and its limits by exit; with no exit, that of the whole site.
-- b:<exit> has the sites that an exit may not visit, by the end of that; bx has those exits, by the end of the last.
local limits, pace_of, slot_free_at = {}, nil, nil

do -- a block, because each local name that is left over makes the start of a script longer
local CRAWL, PACE, BY_EXIT = 1, 2, 3
-- A limit: when it came, until when, a ban until when, its probation (0 = none, 1 = nobody probes now, or the token of the
-- lease that does), until when nobody else may probe, and what was said.
local L_AT, L_UNTIL, L_BAN, L_PROBE, L_PROBE_UNTIL, L_CAUSE = 1, 2, 3, 4, 5, 6

-- The delay that counts for the slots of a site.
function pace_of(site)
    local delay, crawl = rules_of(site).delay, site[LIMITS]
    if crawl ~= 0 and type(crawl) == 'table' then
        crawl = max(crawl[CRAWL], crawl[PACE])
    end
    return crawl > delay and crawl or delay
end

local function over_at(limit)
    return max(limit[L_UNTIL], limit[L_BAN], limit[L_PROBE_UNTIL])
end

function slot_free_at(site, at, pace)
    local moment, blocked, known = site[at + S_BEGUN] + pace, site[at + S_BLOCKED], site[LIMITS]
    if blocked > moment then
        moment = blocked
    end
    if known ~= 0 and type(known) == 'table' then
        local limit = known[BY_EXIT][site[at]]
        return limit and max(moment, over_at(limit)) or moment
    end
    return moment
end

-- The rest is made when it is first needed: a script makes all its functions anew each time, and most sites are not limited.
local function make()

local QUIET = {{QUIET}}

local function limit_of(site, exit)
    local known = site[LIMITS]
    return known ~= 0 and type(known) == 'table' and known[BY_EXIT][exit] or nil
end

local function widened(site)
    local known = site[LIMITS]
    if type(known) ~= 'table' then
        known = {known, 0, {}}
        site[LIMITS] = known
    end
    return known
end

local function limit_for(site, exit)
    local by_exit = widened(site)[BY_EXIT]
    local limit = by_exit[exit]
    if not limit then
        limit = {0, 0, 0, 0, 0, ''}
        by_exit[exit] = limit
    end
    return limit
end

-- When the limit of the whole site is over.
function limits.site_free_at(site)
    local limit = limit_of(site, WHOLE_SITE)
    return limit and over_at(limit) or 0
end

-- Whether only one request may go first: in the slot of this exit, or with no exit in the whole site.
function limits.is_on_probation(site, exit)
    local limit = limit_of(site, exit)
    return limit ~= nil and limit[L_PROBE] ~= 0
end

-- What robots.txt asks for; 0 = nothing.
function limits.crawl_delay_of(site)
    local known = site[LIMITS]
    return type(known) == 'table' and known[CRAWL] or known
end

-- What a settlement says about the pace of its site; -1 = nothing. Answers if that has changed.
function limits.set_pace(site, crawl, pace)
    local before = pace_of(site)
    if pace >= 0 then
        widened(site)[PACE] = pace
    end
    if crawl >= 0 then
        if type(site[LIMITS]) == 'table' then
            site[LIMITS][CRAWL] = crawl
        else
            site[LIMITS] = crawl
        end
    end
    return pace_of(site) ~= before
end

local function remember_ban(name, exit, over)
    call('ZREMRANGEBYSCORE', base .. 'b:' .. exit, '-inf', now)
    call('ZADD', base .. 'b:' .. exit, over, name)
    call('ZADD', base .. 'bx', 'GT', over, exit)
end

local function impose(limit, over, cause)
    limit[L_AT], limit[L_UNTIL], limit[L_CAUSE] = now, max(limit[L_UNTIL], over), cause
    limit[L_PROBE], limit[L_PROBE_UNTIL] = 1, 0
end

-- A slot was limited. So many of them at about the same time, or one while the site is on probation, stop the site.
function limits.impose(name, site, at, wait, penalty, cause)
    local rules, exit = rules_of(site), site[at]
    local limit = limit_for(site, exit)
    impose(limit, now + wait, cause)
    site[at + S_PENALTY] = penalty
    remember_ban(name, exit, over_at(limit))
    local recent, over = 0, 0
    for other, each in pairs(widened(site)[BY_EXIT]) do
        if other ~= WHOLE_SITE and each[L_AT] > max(0, now - rules.limit_window) then
            recent, over = recent + 1, max(over, each[L_UNTIL])
        end
    end
    if recent >= rules.limit_exits or limits.is_on_probation(site, WHOLE_SITE) then
        impose(limit_for(site, WHOLE_SITE), over, cause)
    end
end

-- A limit that a run brings from another store: one request goes first here too.
function limits.bring(site, exit, over)
    local limit = limit_for(site, exit)
    limit[L_UNTIL] = max(limit[L_UNTIL], over)
    limit[L_PROBE] = limit[L_PROBE] ~= 0 and limit[L_PROBE] or 1
end

function limits.ban(name, site, exit, over)
    local limit = limit_for(site, exit)
    limit[L_BAN] = max(limit[L_BAN], over)
    remember_ban(name, exit, over_at(limit))
end

-- People say that an exit may visit a site again. Answers if there was anything in its way.
function limits.lift(site, exit)
    local limit = limit_of(site, exit)
    if limit then
        limit[L_BAN], limit[L_UNTIL] = 0, min(limit[L_UNTIL], now)
        limit[L_PROBE], limit[L_PROBE_UNTIL] = 0, 0
        local whole = limit_of(site, WHOLE_SITE)
        if whole then -- one request goes first
            whole[L_UNTIL] = min(whole[L_UNTIL], now)
        end
    end
    return limit ~= nil
end

-- The lease that probes has ended: well, or so that another has to probe, not before `again`. Answers if it was that one.
local function end_probe(limit, token, well, again)
    if not limit or limit[L_PROBE] ~= token then
        return false
    end
    limit[L_PROBE], limit[L_PROBE_UNTIL] = well and 0 or 1, again
    return true
end

function limits.end_probes(site, exit, token, well, again)
    local of_slot = end_probe(limit_of(site, exit), token, well, again)
    return end_probe(limit_of(site, WHOLE_SITE), token, well, again) or of_slot
end

-- A lease is granted: where there is a probation, it is the one that goes first.
function limits.begin_probes(site, exit, token, expires)
    for _, which in ipairs({exit, WHOLE_SITE}) do
        local limit = limit_of(site, which)
        if limit and limit[L_PROBE] ~= 0 then
            limit[L_PROBE], limit[L_PROBE_UNTIL] = token, expires
        end
    end
end

-- The lease that probes lives on. Answers if it is one.
function limits.renew_probes(site, exit, token, expires)
    local found = false
    for _, which in ipairs({exit, WHOLE_SITE}) do
        local limit = limit_of(site, which)
        if limit and limit[L_PROBE] == token then
            limit[L_PROBE_UNTIL], found = expires, true
        end
    end
    return found
end

-- How many rate limits in a row still count: as shoal.core.politeness.remembered.
function limits.penalty_of(site, at)
    local penalty = site[at + S_PENALTY]
    if penalty == 0 then
        return 0
    end
    local limit = limit_of(site, site[at])
    return max(0, penalty - floor(max(0, now - (limit and limit[L_UNTIL] or 0)) / QUIET))
end

-- Forget limits that were long over by then, with all of their penalty. Answers if there were any.
function limits.forget(site, before)
    local known, found = site[LIMITS], false
    if type(known) ~= 'table' then
        return false
    end
    local penalties = {}
    for at = SLOTS, #site, SLOT_SIZE do
        penalties[site[at]] = site[at + S_PENALTY]
    end
    for exit, limit in pairs(known[BY_EXIT]) do
        if max(limit[L_AT], over_at(limit) + (penalties[exit] or 0) * QUIET) < before then
            known[BY_EXIT][exit], found = nil, true
        end
    end
    if next(known[BY_EXIT]) == nil and known[PACE] == 0 then
        site[LIMITS], found = known[CRAWL], true
    end
    return found
end

-- Whether anything is remembered of limits and bans of this exit.
function limits.knows(site, exit)
    return limit_of(site, exit) ~= nil
end

-- As readers see it: until when, if one request goes first now, and what was said ('' = nothing); nil = no limit.
function limits.describe(site, exit)
    local limit = limit_of(site, exit)
    if limit then
        local over = max(limit[L_UNTIL], limit[L_BAN])
        return over, limit[L_PROBE] ~= 0 and over <= now, limit[L_CAUSE]
    end
    return nil, false, ''
end

end

setmetatable(limits, {__index = function(_, name)
    setmetatable(limits, nil)
    make()
    return limits[name]
end})

end
