-- The health of exits, over all sites: quarantine after failures, bans and caps. One packed record in the hash `eh` for each
-- exit that has failed, is banned or has a cap; none for the others. Half open, one lease at a time tries it; its token is remembered.
-- `ex` is the book of exits: what people have put, which no claim reads.
-- `records`: those that were read. `any`: if there are any at all. `uses`: how often one was used.
local known_exits = {records = {}, any = false, looked = false, uses = 0}

do -- a block, because each local name that is left over makes the start of a script longer
function known_exits.exist()
    if not known_exits.looked then
        known_exits.looked, known_exits.any = true, call('HLEN', base .. 'eh') > 0
    end
    return known_exits.any
end

-- The rest is made when it is first needed: a script makes all its functions anew each time, and most exits are well.
local function make()

local H_FAILURES, H_UNTIL, H_BAN, H_PROBE, H_CAP, H_LIVE = 1, 2, 3, 4, 5, 6
local QUARANTINE_AFTER, QUARANTINE_FIRST, QUARANTINE_MOST = {{QUARANTINE_AFTER}}, {{QUARANTINE_FIRST}}, {{QUARANTINE_MOST}}
local LOOK_AGAIN, LOOK_AGAIN_FULL = 5000, 1000 -- when to look again, as release and the ends of leases are not announced
local records, changed = known_exits.records, {}

local function is_plain(health)
    return health[H_FAILURES] == 0 and health[H_CAP] == 0 and health[H_BAN] <= now
end

function known_exits.load(names)
    local missing, size = {}, 0
    for index = 1, #names do
        local name = names[index]
        if records[name] == nil then
            records[name] = false
            size = size + 1
            missing[size] = name
        end
    end
    for index, record in ipairs(fetch(base .. 'eh', missing)) do
        if record then
            local name = missing[index]
            local health = {select(2, unpack_some(record, 6, 0))}
            records[name] = health
            changed[name] = is_plain(health) or nil
        end
    end
end

-- What is known of an exit; nil = nothing, so it is well.
function known_exits.of(name)
    if not known_exits.exist() then
        return nil
    end
    if records[name] == nil then
        known_exits.load({name})
    end
    return records[name] or nil
end

function known_exits.open(name)
    local health = known_exits.of(name)
    if not health then
        health = {0, 0, 0, '', 0, 0}
        records[name] = health
        known_exits.any = true
    end
    changed[name] = true
    return health
end

function known_exits.close()
    local rows, gone, length = {}, {}, 0
    for name in pairs(changed) do
        local health = records[name]
        if is_plain(health) then
            gone[#gone + 1] = name
        else
            rows[length + 1], rows[length + 2] = name, pack(unpack(health))
            length = length + 2
        end
    end
    many('HSET', base .. 'eh', rows)
    many('HDEL', base .. 'eh', gone)
    changed = {}
end

local function is_full(health)
    return health[H_CAP] > 0 and health[H_LIVE] >= health[H_CAP]
end

function known_exits.is_usable(health, horizon)
    return max(health[H_UNTIL], health[H_BAN]) <= horizon and not is_full(health)
end

-- When to look again at an exit that cannot be used now.
function known_exits.look_again_at(health)
    return min(max(health[H_UNTIL], health[H_BAN], is_full(health) and now + LOOK_AGAIN_FULL or 0), now + LOOK_AGAIN)
end

-- A lease by this exit is granted. Answers from when on it may be used, and its failures so far.
function known_exits.use(name, health, token, expires)
    local not_before, failures = max(now, health[H_UNTIL], health[H_BAN]), health[H_FAILURES]
    changed[name], known_exits.uses = true, known_exits.uses + 1
    if health[H_CAP] > 0 then
        health[H_LIVE] = health[H_LIVE] + 1
    end
    if health[H_FAILURES] >= QUARANTINE_AFTER then
        health[H_PROBE], health[H_UNTIL] = token, expires
    end
    return not_before, failures
end

-- A lease by this exit has ended. If it was the one that tried it, the next may, from `again` on, unless it is judged.
function known_exits.leave(name, token, again)
    local health = known_exits.of(name)
    if health then
        changed[name] = true
        health[H_LIVE] = max(0, health[H_LIVE] - 1)
        if health[H_PROBE] == token then
            health[H_PROBE], health[H_UNTIL] = '', again
        end
    end
end

-- The lease that tries it lives on.
function known_exits.renew(name, token, expires)
    local health = known_exits.of(name)
    if health and health[H_PROBE] == token then
        changed[name] = true
        health[H_UNTIL] = expires
    end
end

-- What has become known: exits that failed, and exits that work.
function known_exits.judge(failed, well)
    for _, name in ipairs(failed) do
        local health = known_exits.open(name)
        local failures = health[H_FAILURES] + 1
        if health[H_UNTIL] > now and health[H_PROBE] == '' then
            failures = 0 -- it was under way when the exit was found to fail, and says nothing new
        else
            health[H_FAILURES] = failures
        end
        if failures >= QUARANTINE_AFTER then
            local doubled = 2 ^ min(failures - QUARANTINE_AFTER, 20)
            health[H_PROBE], health[H_UNTIL] = '', now + min(QUARANTINE_FIRST * doubled, QUARANTINE_MOST)
        end
    end
    for _, name in ipairs(well) do
        local health = known_exits.of(name)
        if health then
            changed[name] = true
            health[H_FAILURES], health[H_UNTIL], health[H_PROBE] = 0, 0, ''
        end
    end
end

-- What people say: most leases at once with so many out now, left alone until then, or well again.
function known_exits.set_cap(name, cap, live)
    if cap > 0 or known_exits.of(name) then
        local health = known_exits.open(name)
        health[H_CAP], health[H_LIVE] = cap, cap > 0 and live or 0
    end
end

function known_exits.ban(name, over)
    local health = known_exits.open(name)
    health[H_BAN] = max(health[H_BAN], over)
end

function known_exits.release(name)
    local health = known_exits.of(name)
    if health then
        changed[name] = true
        health[H_FAILURES], health[H_UNTIL], health[H_BAN], health[H_PROBE] = 0, 0, 0, ''
    end
end

-- As readers see them: name, failures, and until when each is left alone.
function known_exits.describe()
    local found, rows = {}, call('HGETALL', base .. 'eh')
    for index = 1, #rows, 2 do
        local health = {select(2, unpack_some(rows[index + 1], 6, 0))}
        if not is_plain(health) then
            found[#found + 1] = {rows[index], health[H_FAILURES], max(health[H_UNTIL], health[H_BAN])}
        end
    end
    return found
end

end

setmetatable(known_exits, {__index = function(_, name)
    setmetatable(known_exits, nil)
    make()
    return known_exits[name]
end})

end
