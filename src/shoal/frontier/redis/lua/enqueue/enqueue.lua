-- needs: prelude runs_and_lines endings sites site_queue delayed_tasks admit_tasks
-- Accept tasks, all or none. Answers the state that the run was in, and how many were accepted.
-- A parcel (from another partition's outbox) is accepted once, however often it is delivered.
local question = ask[4]
local run = find_run(question.run)
if not run then
    return pack({'unknown', 0})
elseif run.state == 'cancelled' and not question.parcel then
    return pack({'cancelled', 0})
elseif move_state(run) and not question.parcel then
    return pack({move_state(run), 0})
end
local accepted, state = 0, run.state
if run.state ~= 'cancelled' and not (question.parcel and call('ZADD', base .. 'in', 'NX', now, question.parcel) == 0) then
    accepted = admit(run, question.tasks)
    close_queues()
    close_expiry()
    close_sites()
    write_counters()
end
return pack({state, accepted})
