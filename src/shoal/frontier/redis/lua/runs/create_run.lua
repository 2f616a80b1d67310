-- needs: prelude
-- Make a run, unless there is one of that id. Answers its number. With several partitions the first one numbers it, and
-- the others are told the number and all else.
local run = ask[4]
local number = call('HGET', base .. 'runs', run.run_id)
if not number then
    number = run.number or call('HINCRBY', base .. 'meta', 'run', 1)
    call('HSET', base .. 'runs', run.run_id, number)
    local key = base .. 'r:' .. number
    call('HSET', key, 'id', run.run_id, 'scraper', run.scraper, 'mode', run.mode, 'queue', run.rules.queue,
         'policy', run.policy, 'rules', pack(run.rules), 'state', run.state or 'open', 'sealed', run.sealed and '1' or '0',
         'created_at', run.created_at or now)
    if run.move then -- it comes from another store
        call('HSET', key, 'move', run.move)
    end
    if run.input then
        call('HSET', key, 'input', run.input)
    end
end
return tonumber(number)
