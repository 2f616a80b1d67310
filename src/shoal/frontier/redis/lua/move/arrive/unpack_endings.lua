-- needs: prelude runs_and_lines endings arriving_run
-- How pages of an arriving run ended, five values each: name, how, when, why and the URL (false = nothing is said).
-- Answers how many.
local run = arriving()
if not run then
    return false
end
local rows = question.rows
for at = 1, #rows, 5 do
    endings.put(run, rows[at], rows[at + 1], rows[at + 2], rows[at + 3], rows[at + 4], true)
end
return #rows / 5
