-- needs: prelude runs_and_lines arriving_run
-- Dead letters of an arriving run, nine values each: number, lane, site, attempts, crashes, when it died, why, priority, and
-- what only the client reads. Answers how many.
local run = arriving()
if not run then
    return false
end
local rows, first = question.rows, first_task(run)
for at = 1, #rows, 9 do
    local id, line = (first + rows[at]) * partitions + partition, line_for(run, rows[at + 1])
    call('HSET', base .. 'dead:' .. run.number, id,
         pack(id, rows[at + 2], line.number, rows[at + 3], rows[at + 4], rows[at + 5], rows[at + 6], rows[at + 7])
         .. rows[at + 8])
    call('ZADD', base .. 'dz:' .. run.number, id, id)
end
return #rows / 9
