-- What is known of a site: one packed record in the hash `site`, read and written in batches.
-- ASIDE: how many of its tasks wait for their own time or for their paused run.
-- RULES: the rules of its runs, packed: the same few for very many sites; '' = none of its tasks was ever accepted.
-- LIMITS: what its robots.txt asks for; or, where there is more to remember, a list, which `rate_limits.lua` knows.
-- LINES: the lines where tasks of this site are ready: 0, the only one, or a list; or, of a new site with one task, a
-- string: the line, RULED of its queue, and the task's entry, packed one behind the other. Then its slots, eight values:
-- exit, by when the last request has surely begun, what that was before the last lease, by when the request of a lost
-- lease has surely ended, live leases, rate limits in a row, when it was last used, and the last token.
-- A slot without exit is the clock of the site over all its exits, where the rules have one.
local ASIDE, RULES, LIMITS, LINES, SLOTS = 2, 3, 4, 5, 6
local S_BEGUN, S_BEFORE, S_BLOCKED, S_LIVE, S_PENALTY, S_USED, S_LAST, SLOT_SIZE = 1, 2, 3, 4, 5, 6, 7, 8
local WHOLE_SITE = ''
local USED_NOW = numerals[0] .. numerals[now] .. heads[9] -- what stands in a slot between live leases and the last token

-- A site stays packed until somebody has to look inside: a visit by the only slot of a site changes but its last values.
local sites, packed_sites, changed_sites, new_sites = {}, {}, {}, {}

local function load_sites(names)
    local missing = {}
    local size = 0
    for index = 1, #names do
        local name = names[index]
        if not packed_sites[name] and sites[name] == nil then
            size = size + 1
            missing[size] = name
        end
    end
    local records = fetch(base .. 'site', missing)
    for index = 1, size do
        local record = records[index]
        if record then
            packed_sites[missing[index]] = record
        else
            sites[missing[index]] = false
        end
    end
end

-- What is known of a site, to look at; false = nothing.
local function known_site(name)
    local site = sites[name]
    if site == nil then
        if not packed_sites[name] then
            load_sites({name})
        end
        local packed = packed_sites[name]
        site = packed and read_record(packed) or false
        sites[name], packed_sites[name] = site, nil
    end
    return site
end

-- A site that will be written, also if nothing is known of it.
local function site_of(name)
    local site = known_site(name)
    if not site then
        site = {-1, 0, '', 0, 0}
        sites[name], new_sites[name] = site, true
    end
    changed_sites[name] = true
    return site
end

-- The lines where tasks of this site are ready, as a list.
local function lines_of(site)
    local known = site[LINES]
    if type(known) == 'string' then
        local _, line = unpack_some(known, 1, 0)
        return {line}
    end
    return type(known) == 'table' and known or {known ~= 0 and known or nil}
end

-- Whether nothing of this site waits or is being worked on.
local function is_idle(site)
    if site[LINES] ~= 0 or site[ASIDE] > 0 then
        return false
    end
    for at = SLOTS, #site, SLOT_SIZE do
        if site[at + S_LIVE] > 0 then
            return false
        end
    end
    return true
end

local USUAL_LIMIT_EXITS, USUAL_LIMIT_WINDOW = 3, 60000 -- not written, as they are what nearly all sites have

local function pack_rules(delay, site_delay, concurrency, hard_timeout, lease, limit_exits, limit_window)
    local list = {delay, site_delay, concurrency, hard_timeout, lease}
    if limit_exits ~= USUAL_LIMIT_EXITS or limit_window ~= USUAL_LIMIT_WINDOW then
        list[6], list[7] = limit_exits, limit_window
    end
    return pack(list)
end

local known_rules = {}
local function read_rules(packed)
    local rules = known_rules[packed]
    if not rules then
        local list = packed == '' and {0, 0, 1, 0, 0} or unpack_all(packed)
        rules = {delay = list[1], site_delay = list[2], concurrency = list[3], hard_timeout = list[4], lease = list[5],
                 limit_exits = list[6] or USUAL_LIMIT_EXITS, limit_window = list[7] or USUAL_LIMIT_WINDOW}
        known_rules[packed] = rules
    end
    return rules
end

local function rules_of(site)
    return read_rules(site[RULES])
end

-- The rules of a run, packed as those of a site.
local function packed_rules(new)
    if not new.packed then
        new.packed = pack_rules(new.delay, new.site_delay, new.concurrency, new.hard_timeout, new.lease,
                                new.limit_exits or USUAL_LIMIT_EXITS, new.limit_window or USUAL_LIMIT_WINDOW)
    end
    return new.packed
end

-- Rules that keep both, packed.
local function strictest(one, other)
    if one == other then
        return one
    end
    local a, b = read_rules(one), read_rules(other)
    return pack_rules(max(a.delay, b.delay), max(a.site_delay, b.site_delay), min(a.concurrency, b.concurrency),
                      max(a.hard_timeout, b.hard_timeout), max(a.lease, b.lease), min(a.limit_exits, b.limit_exits),
                      max(a.limit_window, b.limit_window))
end

-- A site with no tasks takes the rules of the run that comes; one with tasks keeps the strictest of both, and sweeps look
-- whether both are still needed.
local contested = {'NX', 'CH'}
local function open_site(name, new)
    local site, rules = site_of(name), packed_rules(new)
    if is_idle(site) then
        site[RULES] = rules
    elseif site[RULES] ~= rules then
        site[RULES] = strictest(site[RULES], rules)
        contested[#contested + 1], contested[#contested + 2] = 0, name
    end
end

-- Where the slot of this exit begins; opened if need be.
local function slot_of(site, exit)
    local size = #site
    for at = SLOTS, size, SLOT_SIZE do
        if site[at] == exit then
            return at
        end
    end
    site[size + 1], site[size + 2], site[size + 3], site[size + 4] = exit, 0, 0, 0
    site[size + 5], site[size + 6], site[size + 7], site[size + 8] = 0, 0, 0, ''
    return size + 1
end

-- What stands before the only slot of a packed site, its exit included, is the same for very many sites, and read once:
-- rules, line (0 = in none) and exit. Answers that, and where the slot goes on; nil where there are several slots or lines,
-- limits, or a clock of the whole site.
local ONE_SLOT = 157
local known_tops, usual_length = {}, 0
local function read_top(site)
    local top = known_tops[cut(site, 1, usual_length)]
    if not top then
        if byte(site) ~= ONE_SLOT then
            return nil
        end
        local length, _, rules, limited, line, exit = unpack_some(site, 5, 2)
        rules = read_rules(rules)
        if limited ~= 0 or rules.site_delay > 0 or type(line) ~= 'number' then
            return nil
        end
        top, usual_length = {rules = rules, line = line, exit = exit}, length
        known_tops[cut(site, 1, length)] = top
    end
    return top, usual_length
end

-- A packed site again, with its only slot used just now.
local function write_slot(name, top, begun, before, blocked, live, last)
    packed_sites[name] = top .. numerals[begun] .. numerals[before] .. numerals[blocked] .. numerals[live] .. USED_NOW .. last
    changed_sites[name] = true
end

-- A slot of these sites has come free: whoever waits for the site may come as early as that, but not before others.
local earliest, visits = {}, {}
local function look_at(name, moment)
    local known = earliest[name]
    if not known or moment < known then
        earliest[name] = moment
    end
end

local function move_visit(line, name, moment)
    local rows = visits[line]
    if not rows then
        rows = {'XX', 'LT'}
        visits[line] = rows
    end
    local size = #rows
    rows[size + 1], rows[size + 2] = texts[moment > now and moment or now], name
end

local function move_visits()
    for name, moment in pairs(earliest) do
        local known = known_site(name)[LINES]
        if type(known) == 'table' then
            for index = 1, #known do
                move_visit(known[index], name, moment)
            end
        elseif known ~= 0 and type(known) ~= 'string' then -- new ones are visited anyway
            move_visit(known, name, moment)
        end
    end
    for line, rows in pairs(visits) do
        add_scores(base .. 'd:' .. line, rows)
    end
    earliest, visits = {}, {}
end

local function close_sites()
    local rows, length = {}, 0
    for name in pairs(changed_sites) do
        rows[length + 1], rows[length + 2] = name, packed_sites[name] or pack(sites[name])
        length = length + 2
    end
    many('HSET', base .. 'site', rows)
    changed_sites = {}
    if contested[3] then
        add_scores(base .. 'contested', contested)
        contested = {'NX', 'CH'}
    end
end
