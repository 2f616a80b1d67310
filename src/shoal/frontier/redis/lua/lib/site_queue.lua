-- The ready tasks of a site in one line, in order: higher priority first, then first come.
-- The first few are packed into one record of the hash q:<line>, from FIRST on. The rest overflow, for each priority
-- into a list (o:, what comes in order, compact) and, rarely, into a sorted set (z:, what comes back in between).
-- OVER knows of each: its priority, how many, the first, the last, and if it is a sorted set; 0 = there are none.
-- RULED: a run whose rules the site has taken on and cannot lose before this list is empty; false = nothing is stored.
-- A site that is met for the first time is new until it is visited: it stands in the list f:<line>, behind the moment it
-- came, and not in d:<line>, and as long as it has one task only, that is packed into the site's own record.
-- An entry is: id, priority, run, expires_at (0 = never), attempts, crashes, and then what only the client reads.
local OVER, RULED, FIRST = 2, 3, 4
local GROUP = 5 -- values in OVER for each
local INLINE = 6 -- how many are packed, before the others overflow
-- Like sites, queues stay packed until somebody has to look inside. The head of a packed record is not read, so that a
-- task can come or go without it. Behind that stands -1; or -2, and nothing overflows, if all its tasks have priority 0.
local MIXED, ALIKE = numerals[-1] .. numerals[0], numerals[-2] .. numerals[0]
local ROOM = 700 -- how many bytes of such tasks are packed
local queues, packed_queues, changed_queues, pushes, news, firsts = {}, {}, {}, {}, {}, {}

local function load_queues(line, names)
    local known, packed = queues[line], packed_queues[line]
    if not known then
        known, packed = {}, {}
        queues[line], packed_queues[line] = known, packed
    end
    local missing = {}
    local size = 0
    for index = 1, #names do
        local name = names[index]
        if not packed[name] and not known[name] then
            size = size + 1
            missing[size] = name
        end
    end
    local records, absent = fetch(base .. 'q:' .. line, missing), {}
    for index = 1, size do
        local record, name = records[index], missing[index]
        if record then
            packed[name] = record
        else
            known[name] = {-1, 0, false}
            absent[#absent + 1] = name
        end
    end
    load_sites(absent)
    for index = 1, #absent do
        local name = absent[index]
        local site = known_site(name)
        local with_task = site and site[LINES]
        if type(with_task) == 'string' then
            local entry_at, at_line, ruled = unpack_some(with_task, 2, 0)
            if at_line == line then
                known[name] = {-1, 0, ruled, cut(with_task, entry_at + 1)}
            end
        end
    end
end

local function queue_of(line, name)
    local known, packed = queues[line], packed_queues[line]
    local queue = known and known[name]
    if not queue then
        if not (packed and packed[name]) then
            load_queues(line, {name})
            known, packed = queues[line], packed_queues[line]
        end
        if packed[name] then
            known[name], packed[name] = read_record(packed[name]), nil
        end
        queue = known[name]
    end
    return queue
end

local function is_empty(queue)
    return queue[FIRST] == nil and queue[OVER] == 0
end

local function mark_queue(line, name)
    local changed = changed_queues[line]
    if not changed then
        changed = {}
        changed_queues[line] = changed
    end
    changed[name] = true
end

-- A packed queue has become this.
local function write_queue(line, name, packed)
    packed_queues[line][name] = packed
    mark_queue(line, name)
end

-- A queue that will be written. If it was packed with its site, from now on it is not.
local function change_queue(line, name)
    local queue = queue_of(line, name)
    mark_queue(line, name)
    local site = sites[name]
    if site and type(site[LINES]) == 'string' then
        local _, at_line = unpack_some(site[LINES], 1, 0)
        local other = at_line ~= line and queue_of(at_line, name) -- before it is forgotten
        site[LINES], changed_sites[name] = at_line, true
        if other then
            change_queue(at_line, name)
        end
    end
    return queue
end

-- If this queue is the only one of a site that is new and has one task, that goes with the site.
local function fold(line, name, queue)
    local site = firsts[name] and sites[name]
    if site and site[LINES] == line and queue[OVER] == 0 and not queue[FIRST + 1] and not site[SLOTS] then
        site[LINES], changed_sites[name] = pack(line, queue[RULED]) .. queue[FIRST], true
        return true
    end
    return false
end

local function ready_in(queue)
    local total = #queue - FIRST + 1
    local over = queue[OVER]
    if over ~= 0 then
        for at = 2, #over, GROUP do
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

local function overflow_key(line, site, priority, sorted)
    return base .. (sorted and 'z:' or 'o:') .. line .. ':' .. priority .. ':' .. site
end

-- A moment in six bytes.
local function stamp(moment)
    return struct.pack('>I6', moment)
end

-- The first new sites of a line, in order; and when each came.
local function first_new(line, most)
    local names, moments = call('LRANGE', base .. 'f:' .. line, 0, most - 1), {}
    for index = 1, #names do
        moments[index], names[index] = struct.unpack('>I6', names[index]), cut(names[index], 7)
    end
    return names, moments
end

-- These many are new no more.
local function forget_new(line, number)
    if number > 0 then
        call('LTRIM', base .. 'f:' .. line, number, -1)
    end
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
    local data = change_queue(line, name)
    if is_empty(data) then
        local stored = data[RULED] ~= false
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
        data[FIRST] = entry
        if new_sites[name] and not stored then
            new_sites[name], firsts[name] = nil, true
            push(base .. 'f:' .. line, stamp(now) .. name)
            return
        end
        local rows = news[line]
        if not rows then
            rows = {'NX', 'CH'}
            news[line] = rows
        end
        rows[#rows + 1] = text(now)
        rows[#rows + 1] = name
        return
    end
    local over, list, set = data[OVER], nil, nil
    if over ~= 0 then
        for at = 1, #over, GROUP do
            if over[at] == priority then
                if over[at + 4] then
                    set = at
                else
                    list = at
                end
            end
        end
    end
    if list and id > over[list + 3] then
        push(overflow_key(line, name, priority), entry)
        over[list + 1], over[list + 3] = over[list + 1] + 1, id
    elseif #data < FIRST + INLINE then
        insert(data, id, priority, entry)
    elseif list and id < over[list + 2] then
        close_pushes()
        call('LPUSH', overflow_key(line, name, priority), entry)
        over[list + 1], over[list + 2] = over[list + 1] + 1, id
    elseif set then
        call('ZADD', overflow_key(line, name, priority, true), id, entry)
        over[set + 1], over[set + 2], over[set + 3] = over[set + 1] + 1, min(over[set + 2], id), max(over[set + 3], id)
    else
        if over == 0 then
            over = {}
            data[OVER] = over
        end
        local size = #over
        over[size + 1], over[size + 2], over[size + 3], over[size + 4], over[size + 5] = priority, 1, id, id, list ~= nil
        if list then
            call('ZADD', overflow_key(line, name, priority, true), id, entry)
        else
            push(overflow_key(line, name, priority), entry)
        end
    end
end

-- Append a new task to a packed queue that is ruled by its run, where it comes last, as most do. Answers if that could be.
-- If not, the queue is packed no more, so that those behind it stay behind it.
local function append(line, name, queue, run, priority, entry)
    local alike = ALIKE .. numerals[run]
    if priority == 0 and #queue < ROOM and cut(queue, 2, 1 + #alike) == alike then
        write_queue(line, name, queue .. heads[#entry] .. entry)
        return true
    end
    local unread, over, ruled, a, b, c, d, e = unpack_some(queue, 7, 2)
    if unread == -1 and over == 0 and ruled == run then
        local _, _, first = unpack_some(a, 2, 0)
        local _, _, last = unpack_some(e or d or c or b or a, 2, 0)
        if last >= priority then
            local kind = first == 0 and priority == 0 and ALIKE or MIXED
            write_queue(line, name, cut(queue, 1, 1) .. kind .. cut(queue, 2 + #kind) .. heads[#entry] .. entry)
            return true
        end
    end
    queue_of(line, name)
    return false
end

-- The number of the first task that an overflow has.
local function first_of(key, sorted)
    local entry = sorted and call('ZRANGE', key, 0, 0)[1] or not sorted and call('LINDEX', key, 0)
    local _, id = unpack_some(entry, 1, 0)
    return id
end

local function forget_overflow(data, at)
    local over = data[OVER]
    for _ = 1, GROUP do
        table.remove(over, at)
    end
    if #over == 0 then
        data[OVER] = 0
    end
end

-- Take some of the overflow that begins at `at`, and merge them with the packed ones.
local function refill(line, name, data, at)
    close_pushes()
    local over = data[OVER]
    local sorted = over[at + 4]
    local key = overflow_key(line, name, over[at], sorted)
    local entries = call(sorted and 'ZPOPMIN' or 'LPOP', key, INLINE)
    local step = sorted and 2 or 1
    for index = 1, #entries, step do
        local _, id, priority = unpack_some(entries[index], 2, 0)
        insert(data, id, priority, entries[index])
    end
    over[at + 1] = over[at + 1] - #entries / step
    if over[at + 1] > 0 then
        over[at + 2] = first_of(key, sorted)
    else
        forget_overflow(data, at)
    end
end

-- Take the first task of a site, as its entry; nil if there is none.
local function pop(line, name, data)
    local over = data[OVER]
    if over ~= 0 then
        local best = 1
        for at = 1 + GROUP, #over, GROUP do
            if over[at] > over[best] or (over[at] == over[best] and over[at + 2] < over[best + 2]) then
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
    local entry = data[FIRST]
    for at = FIRST, #data do
        data[at] = data[at + 1]
    end
    return entry
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
        local rows, gone, length, known, packed = {}, {}, 0, queues[line], packed_queues[line]
        for name in pairs(changed) do
            local record, queue = packed[name], known[name]
            if record then
                rows[length + 1], rows[length + 2] = name, record
                length = length + 2
            elseif is_empty(queue) then
                gone[#gone + 1] = name
            elseif not fold(line, name, queue) then
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
