-- Runs and lines, and what this script adds to their counters. Written once, by write_counters.
-- r:<run> what a run is, c:<run> its counters, lines/ln/lc the lines by name, by number, and their counts.
local runs, lines, jobs = {}, {}, {}
local decides = false -- whether this script is the one that decides how a run is

local function run_of(number)
    local run = runs[number]
    if run == nil then
        local row = call('HMGET', base .. 'r:' .. number, 'id', 'state', 'sealed', 'rules', 'move', 'emptied')
        run = row[1] and {number = number, id = row[1], state = row[2], sealed = row[3] == '1',
                          rules = cmsgpack.unpack(row[4]), move = row[5], emptied = row[6], counts = {}, parts = {},
                          lines = {}} or false
        runs[number] = run
    end
    return run
end

local function find_run(id)
    local number = call('HGET', base .. 'runs', id)
    return number and run_of(tonumber(number))
end

-- The state of a run's move between two stores, where that closes it here: 'leaving', 'arriving', or nil.
local function move_state(run)
    local state = run.state == 'paused' and run.move and string.match(run.move, '"state":"(%a+)"')
    return (state == 'leaving' or state == 'arriving') and state or nil
end

local function count(run, name, amount)
    run.counts[name] = (run.counts[name] or 0) + amount
end

local function line_of(number)
    local line = lines[number]
    if not line then
        local row = cmsgpack.unpack(call('HGET', base .. 'ln', number))
        line = {number = number, queue = row[1], scraper = row[2], lane = row[3], pool = row[4], auto_ack = row[5],
                counter = 'lane:' .. row[3], waiting = 0, leased = 0}
        lines[number] = line
    end
    return line
end

-- The line where this run's tasks of a lane wait; `lane_and_pool` has behind \31 the pool too, where that is not the run's.
-- Opened if need be.
local function line_for(run, lane_and_pool)
    local line = run.lines[lane_and_pool]
    if not line then
        local rules = run.rules
        local lane, pool = string.match(lane_and_pool, '^([^\31]*)\31?(.*)$')
        pool = pool ~= '' and pool or rules.pool
        local name = rules.queue .. '\0' .. rules.scraper .. '\0' .. lane .. '\0' .. pool
        local number = call('HGET', base .. 'lines', name)
        if not number then
            number = call('HINCRBY', base .. 'meta', 'line', 1)
            local own = rules.lanes[lane]
            call('HSET', base .. 'lines', name, number)
            call('HSET', base .. 'ln', number,
                 pack({rules.queue, rules.scraper, lane, pool, own ~= nil and own[2] == true}))
            call('SADD', base .. 'ql:' .. rules.queue, number)
            if run.state == 'paused' and rules.queue == run.id then
                call('SADD', base .. 'held', number)
            end
        end
        line = line_of(tonumber(number))
        run.lines[lane_and_pool] = line
    end
    return line
end

-- Tasks of a run come into a line, or leave it, or change from waiting to leased.
local function move(run, line, waiting, leased)
    line.waiting = line.waiting + waiting
    line.leased = line.leased + leased
    local other = line.pool ~= run.rules.pool and '\31' .. line.pool or ''
    if waiting + leased ~= 0 then
        count(run, line.counter .. other, waiting + leased)
    end
    if run.rules.job and leased ~= 0 then
        count(run, 'l:' .. line.lane .. other, leased)
    end
end

local function write_line_counters()
    for number, line in pairs(lines) do
        local waiting, leased = line.waiting, line.leased
        if waiting ~= 0 or leased ~= 0 then
            local change = waiting + leased
            local total = call('HINCRBY', base .. 'lc', 'w' .. number, waiting)
                        + call('HINCRBY', base .. 'lc', 'l' .. number, leased)
            if change ~= 0 then
                local kind = line.scraper .. '\0' .. line.lane
                call('HINCRBY', base .. 'tot', kind, change)
                if total == 0 then
                    call('SREM', base .. 'act:' .. kind, number)
                elseif total == change then
                    call('SADD', base .. 'act:' .. kind, number)
                end
            end
            line.waiting, line.leased = 0, 0
        end
    end
end

-- A task of a job comes, or goes for good: its group has one more, or one less. Bodies end with `extra`, or with nil.
function jobs.count_part(run, body, amount)
    if string.byte(body, -1) ~= 192 then
        local readable, extra = pcall(cjson.decode, unpack_all(body)[4]) -- what is nested too deeply has no group
        local group = readable and extra.group
        if type(group) == 'string' then
            run.parts[group] = (run.parts[group] or 0) + amount
        end
    end
end

function jobs.leave_part(run, entry)
    if run.rules.job then
        jobs.count_part(run, cut(entry, unpack_some(entry, 6, 0) + 1), -1)
    end
end

-- The first partition knows jobs by what becomes of them.
function jobs.ended(run, over)
    if run.rules.job and partition == 0 then
        local number, queue = run.number, run.rules.queue
        call('ZREM', base .. 'jq:' .. queue, number)
        call('ZADD', base .. 'je:' .. queue, now, number)
        if over then
            call('ZADD', base .. 'jx', over, number)
        end
        if call('HEXISTS', base .. 'j:' .. number, 'callback') == 1 then
            call('ZADD', base .. 'jc', number, number)
        end
    end
end

function jobs.goes_on(run)
    if run.rules.job and partition == 0 then
        local number, queue = run.number, run.rules.queue
        call('ZADD', base .. 'jq:' .. queue, number, number)
        call('ZREM', base .. 'je:' .. queue, number)
        call('ZREM', base .. 'jx', number)
        call('ZREM', base .. 'jc', number)
    end
end

-- The version of a job in this partition: how many of its tasks have ended here, and the step of its life.
local STEPS = {paused = 2, finished = 3, cancelled = 4}
function jobs.close(run, row)
    for group, amount in pairs(run.parts) do
        if amount ~= 0 and call('HINCRBY', base .. 'g:' .. run.number, group, amount) <= 0 then
            call('HDEL', base .. 'g:' .. run.number, group)
        end
    end
    run.parts = {}
    local ended = (row[4] or 0) + (row[5] or 0) + (row[6] or 0) + (row[7] or 0) + (row[8] or 0)
    local begun = (row[2] or 0) + (row[9] or 0) > 0 and 1 or 0
    call('HSET', base .. 'jv', run.id, text(8 * ended + (STEPS[run.state] or begun)))
end

-- When their time is over, results are deleted by sweeps; what else is left of a job goes where jobs expire.
local function keep_results(run)
    local over = run.rules.results_ttl and now + run.rules.results_ttl
    if over then
        call('HSET', base .. 'r:' .. run.number, 'results_until', over)
        call('ZADD', base .. 'res', over, run.number)
    end
    jobs.ended(run, over)
end

local function finish(run)
    run.state = 'finished'
    call('HSET', base .. 'r:' .. run.number, 'state', 'finished', 'ended_at', now)
    keep_results(run)
end

local function reopen(run)
    run.state = 'running'
    local key = base .. 'r:' .. run.number
    call('HSET', key, 'state', 'running')
    call('HDEL', key, 'ended_at', 'results_until')
    call('ZREM', base .. 'res', run.number)
    jobs.goes_on(run)
    if partitions > 1 and not decides then -- the others are to know
        call('SADD', base .. 'revived', run.id)
    end
end

-- Writes the counters, and ends the runs that have nothing left. With several partitions nobody can tell from here:
-- the runs that have nothing left in this one are answered, and whoever asked looks at them all.
local function write_counters()
    write_line_counters()
    local quiet = {}
    for number, run in pairs(runs) do
        if run and (next(run.counts) or next(run.parts)) then
            local key = base .. 'c:' .. number
            for name, amount in pairs(run.counts) do
                if amount ~= 0 then
                    call('HINCRBY', key, name, amount)
                end
            end
            run.counts = {}
            local row = run.rules.job
                and call('HMGET', key, 'waiting', 'leased', 'outbox', 'done', 'dead', 'expired', 'dropped', 'cancelled', 'requests')
            if run.sealed and run.state == 'running' then
                row = row or call('HMGET', key, 'waiting', 'leased', 'outbox')
                if (row[1] or '0') == '0' and (row[2] or '0') == '0' and (row[3] or '0') == '0' then
                    if partitions == 1 then
                        finish(run)
                    else
                        quiet[#quiet + 1] = run.id
                    end
                end
            end
            if run.rules.job then
                jobs.close(run, row)
            end
        end
    end
    return quiet
end
