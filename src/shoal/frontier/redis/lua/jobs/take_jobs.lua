-- needs: prelude runs_and_lines endings sites site_queue delayed_tasks admit_tasks
-- Tasks of jobs that the first partition has just made, each as a parcel that is accepted once: parcel, run id, number,
-- the fields of the run, tasks.
for _, row in ipairs(ask[4].rows) do
    if call('HSETNX', base .. 'runs', row[2], row[3]) == 1 then
        call('HSET', base .. 'r:' .. row[3], unpack(row[4]))
    end
    local run = find_run(row[2])
    if run.state ~= 'cancelled' and call('ZADD', base .. 'in', 'NX', text(now), row[1]) == 1 then
        admit(run, row[5])
    end
end
close_queues()
close_expiry()
close_sites()
write_counters()
return true
