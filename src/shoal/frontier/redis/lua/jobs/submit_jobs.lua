-- needs: prelude runs_and_lines endings sites site_queue delayed_tasks admit_tasks
-- Create jobs with their tasks, sealed, in the first partition. Tasks of others leave from here as parcels: they are on
-- their way when this is done, and are delivered whatever happens.
-- kinds: of runs, each scraper, mode, queue, policy and rules. jobs: a flat list, ROW values each: run id, kind, input,
-- owner, key, fingerprint, quota (-1 = none) and its window, groups, error, callback, tasks, parcels.
-- Answers the moment, and for each: what became of it, id, place, fingerprint, quota used, when that begins anew, its
-- number, and the serials of its parcels.
local ROW = 13
local question, answers = ask[4], {}

local function repeated(number)
    local row = call('HMGET', base .. 'r:' .. number, 'id', 'queue')
    local rank = call('ZRANK', base .. 'jq:' .. row[2], number)
    local print_of = call('HGET', base .. 'j:' .. number, 'fingerprint')
    return {'repeated', row[1], rank and rank + 1 or 0, print_of or '', 0, 0, 0, {}}
end

-- How much of the quota is used, this job included, and when it begins anew.
local function spend(owner, most, window)
    local resets_at, used = now - now % window + window, 1
    local known = call('HGET', base .. 'quota', owner)
    if known then
        local row = unpack_all(known)
        used = row[1] == resets_at and row[2] + 1 or 1
    end
    if used <= most then
        call('HSET', base .. 'quota', owner, pack({resets_at, used}))
    end
    return used, resets_at
end

local function describe(number, owner, fields)
    call('HSET', base .. 'j:' .. number, 'owner', owner, unpack(fields))
    call('ZADD', base .. 'jobs', number, number)
    call('ZADD', base .. 'jo:' .. owner, number, number)
end

-- Parcels as `settle` leaves them.
local function send(run, parcels)
    local serials = {}
    for index, parcel in ipairs(parcels) do
        local serial = call('HINCRBY', base .. 'meta', 'parcel', 1)
        call('HSET', base .. 'out', serial, pack(parcel[1], run.id, parcel[2]))
        call('ZADD', base .. 'outz', text(now), serial)
        count(run, 'outbox', 1)
        serials[index] = serial
    end
    return serials
end

local function create(job, at)
    local id, kind, input = job[at], question.kinds[job[at + 1]], job[at + 2]
    local number = call('HINCRBY', base .. 'meta', 'run', 1)
    local run = {number = number, id = id, state = 'running', sealed = true, rules = kind.rules, counts = {}, parts = {},
                 lines = kind.lines}
    runs[number] = run
    call('HSET', base .. 'runs', id, number)
    call('HSET', base .. 'r:' .. number, 'id', id, 'scraper', kind[1], 'mode', kind[2], 'queue', kind[3], 'policy', kind[4],
         'rules', kind[5], 'state', 'running', 'sealed', '1', 'created_at', text(now))
    if input then
        call('HSET', base .. 'r:' .. number, 'input', input)
    end
    local fields = {'fingerprint', job[at + 5]}
    for place, name in ipairs({'key', 'groups', 'error', 'callback'}) do
        local value = job[at + (place == 1 and 4 or 6 + place)]
        if value then
            fields[#fields + 1], fields[#fields + 2] = name, value
        end
    end
    describe(number, job[at + 3], fields)
    if job[at + 4] then
        call('HSET', base .. 'jk', job[at + 3] .. '\0' .. job[at + 4], number)
    end
    local tasks, parcels = job[at + 11], job[at + 12]
    if not tasks[1] and not parcels[1] then
        finish(run)
        count(run, 'waiting', 0)
        return 0, number, {}
    end
    call('ZADD', base .. 'jq:' .. kind[3], number, number)
    admit(run, tasks)
    count(run, 'waiting', 0)
    return call('ZCARD', base .. 'jq:' .. kind[3]), number, send(run, parcels)
end

local function submit(job, at)
    local number = call('HGET', base .. 'runs', job[at])
        or job[at + 4] and call('HGET', base .. 'jk', job[at + 3] .. '\0' .. job[at + 4])
    if number then
        return repeated(number)
    end
    local used, resets_at = 0, 0
    if job[at + 6] >= 0 then
        used, resets_at = spend(job[at + 3], job[at + 6], job[at + 7])
        if used > job[at + 6] then
            return {'limited', job[at], 0, '', job[at + 6], resets_at, 0, {}}
        end
    end
    local place, made, serials = create(job, at)
    return {'created', job[at], place, job[at + 5], used, resets_at, made, serials}
end

for _, kind in ipairs(question.kinds) do
    kind.rules, kind.lines = unpack_all(kind[5]), {}
    call('SADD', base .. 'jqs', kind[3])
end
for at = 1, #question.jobs, ROW do
    answers[#answers + 1] = submit(question.jobs, at)
end
close_queues()
close_expiry()
close_sites()
write_counters()
return pack({now, answers})
