-- needs: prelude runs_and_lines arriving_run
-- Keys that an arriving run has seen, two values each: the set, and the key in it. Answers how many.
local run = arriving()
if not run then
    return false
end
local rows = question.rows
for at = 1, #rows, 2 do
    call('SADD', base .. 's:' .. run.number .. ':' .. rows[at], rows[at + 1])
end
return #rows / 2
