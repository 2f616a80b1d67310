-- needs: prelude runs_and_lines
-- Room for the numbers of an arriving run's tasks in this partition.
local run = find_run(ask[4].run)
local last = call('HINCRBY', base .. 'meta', 'serial', ask[4].span)
call('HSET', base .. 'r:' .. run.number, 'first_task', last - ask[4].span + 1)
return true
