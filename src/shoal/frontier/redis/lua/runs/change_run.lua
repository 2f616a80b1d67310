-- needs: prelude runs_and_lines sites site_queue delayed_tasks held_tasks
-- seal, pause, resume, cancel or `turn` a run (the mark of its move, if it is `before`, becomes `after`); `finish` and `reopen` where the client has counted all partitions.
-- With several partitions the first one decides, and the others `adopt` what it says: the newer version of it wins.
-- Answers false if there is no such run; else how it is now, if another call is needed, and the runs with nothing left.
local ENDED = {finished = true, cancelled = true}
local RELEASE_AT_MOST = 2000
local question = ask[4]
decides = true
local run = find_run(question.run)
if not run then
    return false
end
local key, more = base .. 'r:' .. run.number, false
local before = run.state

local function hold_lines(held)
    if run.rules.queue == run.id then
        for _, line in ipairs(call('SMEMBERS', base .. 'ql:' .. run.id)) do
            call(held and 'SADD' or 'SREM', base .. 'held', line)
        end
    end
end

local function become(state)
    if state == before then
        return
    end
    run.state = state
    call('HSET', key, 'state', state)
    if state == 'paused' then
        hold_lines(true)
    elseif state == 'cancelled' then
        hold_lines(true)
        call('HSET', key, 'ended_at', now)
        keep_results(run)
        call('SADD', base .. 'cancelled', run.number)
    elseif before == 'paused' then
        hold_lines(false)
        call('SADD', base .. 'thaw', run.number)
    end
end

local function mark(move)
    run.move = move
    call('HSET', key, 'move', move)
end

local function seal()
    run.sealed = true
    call('HSET', key, 'sealed', '1')
end

local verbs = {
    look = function() end,
    seal = function()
        if not run.sealed and not move_state(run) then
            seal()
            become(run.state == 'open' and 'running' or run.state)
        end
    end,
    pause = function() become(ENDED[before] and before or 'paused') end,
    resume = function()
        local moving = move_state(run)
        if before == 'paused' and moving ~= 'arriving' then
            if moving == 'leaving' then
                mark((string.gsub(run.move, '"state":"leaving"', '"state":"stayed"')))
            end
            become(run.sealed and 'running' or 'open')
        end
    end,
    turn = function()
        local to = question.state
        if (run.move or '') ~= question.before or ENDED[before] or (to ~= 'leaving' and before ~= 'paused') then
            return
        end
        mark(question.after)
        if to == 'leaving' then
            become('paused')
        elseif to == 'left' then
            become('cancelled')
        elseif not question.paused then
            become(run.sealed and 'running' or 'open')
        end
    end,
    cancel = function() become(ENDED[before] and before or 'cancelled') end,
    finish = function()
        if run.sealed and before == 'running' then
            finish(run)
        end
    end,
    reopen = function()
        if before == 'finished' then
            reopen(run)
        end
    end,
}

local sealed, known_move = run.sealed, run.move
local as = question.as
if not as then
    verbs[question.verb]()
    if partitions > 1 and (run.state ~= before or run.sealed ~= sealed or run.move ~= known_move) then
        call('HINCRBY', key, 'version', 1)
        call('SADD', base .. 'spread', run.id)
    end
elseif as.version > tonumber(call('HGET', key, 'version') or 0) then
    call('HSET', key, 'version', as.version)
    if as.sealed and not run.sealed then
        seal()
    end
    if as.move then
        mark(as.move)
    end
    become(as.state)
    call('HDEL', key, 'ended_at', 'results_until')
    call('ZREM', base .. 'res', run.number)
    if as.ended_at then
        call('HSET', key, 'ended_at', as.ended_at)
    end
    if as.results_until then
        call('HSET', key, 'results_until', as.results_until)
        call('ZADD', base .. 'res', as.results_until, run.number)
    end
end
if run.state ~= 'paused' and call('SISMEMBER', base .. 'thaw', run.number) == 1 then
    more = release(run, RELEASE_AT_MOST) == RELEASE_AT_MOST
end
count(run, 'waiting', 0) -- so that a run with nothing to do is finished at once
close_queues()
close_sites()
local quiet = write_counters()
local row = call('HMGET', key, 'version', 'ended_at', 'results_until')
return pack({run.state, run.sealed, tonumber(row[1] or 0), tonumber(row[2]) or false, tonumber(row[3]) or false, more, quiet,
             run.move or false})
