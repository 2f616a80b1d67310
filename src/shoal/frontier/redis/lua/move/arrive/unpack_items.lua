-- needs: prelude runs_and_lines arriving_run
-- Batches of items of an arriving run, behind those that it has. Answers how many.
local run = arriving()
if not run then
    return false
end
many('RPUSH', base .. 'it:' .. run.number, question.rows)
return #question.rows
