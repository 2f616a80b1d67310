-- needs: prelude books arriving
-- The counters that an arriving run brings, by name.
local run = arriving()
if not run then
    return false
end
for name, amount in pairs(question.counts) do
    count(run, name, amount)
end
close_books()
return true
