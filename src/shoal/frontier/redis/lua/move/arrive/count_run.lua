-- needs: prelude runs_and_lines arriving_run
-- The counters that an arriving run brings, by name.
local run = arriving()
if not run then
    return false
end
for name, amount in pairs(question.counts) do
    count(run, name, amount)
end
write_counters()
return true
