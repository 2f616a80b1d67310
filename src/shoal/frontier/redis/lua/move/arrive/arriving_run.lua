-- The run that is arriving with the mark of the question; false = there is none.
local question = ask[4]
local function arriving()
    local run = find_run(question.run)
    return run and run.move == question.move and run.state == 'paused' and run
end

local function first_task(run)
    return tonumber(call('HGET', base .. 'r:' .. run.number, 'first_task'))
end
