-- needs: prelude runs_and_lines endings
-- Forget dead letters, except that there were such. They stay counted. `tasks` = nil: all of the run, at most so many at a time.
local AT_MOST = 2000
local question = ask[4]
local run = find_run(question.run)
if not run then
    return false
end
local ids = question.tasks or call('ZRANGE', base .. 'dz:' .. run.number, 0, AT_MOST - 1)
local done = 0
for from = 1, #ids, AT_ONCE do
    local last = min(from + AT_ONCE - 1, #ids)
    for _, letter in ipairs(call('HMGET', base .. 'dead:' .. run.number, unpack(ids, from, last))) do
        if letter then
            local body_at, _, _, _, _, _, died_at, reason = unpack_some(letter, 8, 0)
            endings.remember(run, cut(letter, body_at + 1), 'dead', died_at, reason)
        end
    end
    done = done + call('HDEL', base .. 'dead:' .. run.number, unpack(ids, from, last))
    call('ZREM', base .. 'dz:' .. run.number, unpack(ids, from, last))
end
return pack({run.state, done, not question.tasks and #ids == AT_MOST})
