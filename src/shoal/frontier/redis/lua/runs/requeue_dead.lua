-- needs: prelude runs_and_lines sites site_queue delayed_tasks
-- Dead letters wait again, as new as on their first day. `tasks` = nil: all of the run, at most so many at a time.
local AT_MOST = 2000
local question = ask[4]
local run = find_run(question.run)
if not run then
    return false
elseif run.state == 'cancelled' then
    return pack({'cancelled', 0, false})
elseif move_state(run) then
    return pack({move_state(run), 0, false})
end
local ids = question.tasks or call('ZRANGE', base .. 'dz:' .. run.number, 0, AT_MOST - 1)
local found, done, state = {}, 0, run.state
for index, letter in ipairs(fetch(base .. 'dead:' .. run.number, ids)) do
    if letter and not found[letter] then
        found[letter] = true
        local next_at, id, name, number, _, _, _, _, priority = unpack_some(letter, 8, 0)
        local entry = pack(id, priority, run.number, 0, 0, 0) .. cut(letter, next_at + 1)
        local line = line_of(number)
        open_site(name, run.rules)
        place(number, name, id, priority, entry)
        move(run, line, 1, 0)
        if run.rules.job then
            jobs.count_part(run, cut(letter, next_at + 1), 1)
        end
        done = done + 1
    end
end
if done > 0 then
    many('HDEL', base .. 'dead:' .. run.number, ids)
    many('ZREM', base .. 'dz:' .. run.number, ids)
    count(run, 'dead', -done)
    count(run, 'waiting', done)
    if run.state == 'finished' then
        reopen(run)
    end
end
close_queues()
close_sites()
write_counters()
return pack({state, done, not question.tasks and #ids == AT_MOST})
