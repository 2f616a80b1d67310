-- needs: prelude books endings sites queue aside admit
-- Accept tasks, all or none. Answers the state that the run was in, and how many were accepted.
-- A parcel (from another partition's outbox) is accepted once, however often it is delivered.
local question = ask[4]
local run = find_run(question.run)
if not run then
    return pack({'unknown', 0})
elseif run.state == 'cancelled' and not question.parcel then
    return pack({'cancelled', 0})
elseif way_of(run) and not question.parcel then
    return pack({way_of(run), 0})
end
local accepted, state = 0, run.state
if run.state ~= 'cancelled' and not (question.parcel and call('ZADD', base .. 'in', 'NX', now, question.parcel) == 0) then
    accepted = admit(run, question.tasks)
    close_queues()
    close_expiry()
    close_sites()
    close_books()
end
return pack({state, accepted})
