-- The ready tasks of a site in one line, in order: higher priority first, then first come.
-- The first few are packed into one record of the hash q:<line>, from FIRST on. The rest overflow into lists, one for
-- each priority, which are in order by themselves; OVER knows the priority, count, first and last of each (0 = none).
-- RULED: a run whose rules the site has taken on and cannot lose before this list is empty.
-- An entry is: id, priority, run, expires_at (0 = never), attempts, crashes, and then what only the client reads.
local OVER, RULED, FIRST = 2, 3, 4
local INLINE = 6 -- how many are packed, before the others overflow
local queues, changed_queues, pushes, news = {}, {}, {}, {}

local function load_queues(line, names)
    local known = queues[line]
    if not known then
        known = {}
        queues[line] = known
    end
    local missing = {}
    local size = 0
    for index = 1, #names do
        local name = names[index]
        if known[name] == nil then
            known[name] = false
            size = size + 1
            missing[size] = name
        end
    end
    local records = fetch(base .. 'q:' .. line, missing)
    for index = 1, size do
        local record = records[index]
        known[missing[index]] = record and read_record(record) or {-1, 0, 0}
    end
end

local function queue_of(line, site)
    local known = queues[line]
    if not known or not known[site] then
        load_queues(line, {site})
        known = queues[line]
    end
    return known[site]
end

local function is_empty(queue)
    return queue[FIRST] == nil and queue[OVER] == 0
end

local function change_queue(line, name)
    local changed = changed_queues[line]
    if not changed then
        changed = {}
        changed_queues[line] = changed
    end
    changed[name] = true
end

local function ready_in(queue)
    local total = #queue - FIRST + 1
    local over = queue[OVER]
    if over ~= 0 then
        for at = 2, #over, 4 do
            total = total + over[at]
        end
    end
    return total
end

local function insert(data, id, priority, entry)
    local at = #data
    while at >= FIRST do
        local _, other, others = unpack_some(data[at], 2, 0)
        if others > priority or (others == priority and other < id) then
            break
        end
        at = at - 1
    end
    table.insert(data, at + 1, entry)
end

local function overflow_key(line, site, priority)
    return base .. 'o:' .. line .. ':' .. priority .. ':' .. site
end

local function push(key, entry)
    local waiting = pushes[key]
    if waiting then
        waiting[#waiting + 1] = entry
    else
        pushes[key] = {entry}
    end
end

local function close_pushes()
    for key, entries in pairs(pushes) do
        many('RPUSH', key, entries)
    end
    pushes = {}
end

-- Put a task where it belongs. The first one of a site schedules a visit, from now on.
local function place(line, name, id, priority, entry)
    local data = queue_of(line, name)
    change_queue(line, name)
    if is_empty(data) then
        data[RULED] = 0
        local site = site_of(name)
        local known = site[LINES]
        if known == 0 then
            site[LINES] = line
        elseif type(known) == 'table' then
            known[#known + 1] = line
        else
            site[LINES] = {known, line}
        end
        local rows = news[line]
        if not rows then
            rows = {'NX', 'CH'}
            news[line] = rows
        end
        rows[#rows + 1] = text(now)
        rows[#rows + 1] = name
        data[FIRST] = entry
        return
    end
    local over = data[OVER]
    if over ~= 0 then
        for at = 1, #over, 4 do
            if over[at] == priority then
                if id > over[at + 3] then
                    push(overflow_key(line, name, priority), entry)
                    over[at + 1], over[at + 3] = over[at + 1] + 1, id
                elseif id < over[at + 2] and #data >= FIRST + INLINE then
                    close_pushes()
                    call('LPUSH', overflow_key(line, name, priority), entry)
                    over[at + 1], over[at + 2] = over[at + 1] + 1, id
                else
                    insert(data, id, priority, entry)
                end
                return
            end
        end
    end
    if #data < FIRST + INLINE then
        insert(data, id, priority, entry)
        return
    end
    if over == 0 then
        over = {}
        data[OVER] = over
    end
    local size = #over
    over[size + 1], over[size + 2], over[size + 3], over[size + 4] = priority, 1, id, id
    push(overflow_key(line, name, priority), entry)
end

-- Take some of the list that begins at `at` in the overflow, and merge them with the packed ones.
local function refill(line, name, data, at)
    close_pushes()
    local over = data[OVER]
    local key = overflow_key(line, name, over[at])
    local entries = call('LPOP', key, INLINE)
    for _, entry in ipairs(entries) do
        local _, id, priority = unpack_some(entry, 2, 0)
        insert(data, id, priority, entry)
    end
    over[at + 1] = over[at + 1] - #entries
    if over[at + 1] > 0 then
        local _, first = unpack_some(call('LINDEX', key, 0), 1, 0)
        over[at + 2] = first
        return
    end
    for _ = 1, 4 do
        table.remove(over, at)
    end
    if #over == 0 then
        data[OVER] = 0
    end
end

-- Take the first task of a site, as its entry; nil if there is none.
local function pop(line, name, data)
    local over = data[OVER]
    if over ~= 0 then
        local best = 1
        for at = 5, #over, 4 do
            if over[at] > over[best] then
                best = at
            end
        end
        local first = data[FIRST]
        if first then
            local _, id, priority = unpack_some(first, 2, 0)
            if over[best] > priority or (over[best] == priority and over[best + 2] < id) then
                first = nil
            end
        end
        if not first then
            refill(line, name, data, best)
        end
    end
    change_queue(line, name)
    return table.remove(data, FIRST)
end

-- The last task of a site has gone: there is nothing to visit it for.
local function forget_visit(line, name)
    local site = site_of(name)
    local known = site[LINES]
    if known == line then
        site[LINES] = 0
    elseif type(known) == 'table' then
        for index = #known, 1, -1 do
            if known[index] == line then
                table.remove(known, index)
            end
        end
        if #known == 1 then
            site[LINES] = known[1]
        end
    end
end

local function close_queues()
    close_pushes()
    for line, changed in pairs(changed_queues) do
        local rows, gone, length, known = {}, {}, 0, queues[line]
        for name in pairs(changed) do
            local queue = known[name]
            if is_empty(queue) then
                gone[#gone + 1] = name
            else
                rows[length + 1], rows[length + 2] = name, pack(queue)
                length = length + 2
            end
        end
        many('HSET', base .. 'q:' .. line, rows)
        many('HDEL', base .. 'q:' .. line, gone)
    end
    changed_queues = {}
    for line, rows in pairs(news) do
        add_scores(base .. 'd:' .. line, rows)
    end
    news = {}
end
