-- needs: prelude cache_entries
-- Keep values where nothing else is. Answers for each whether that was so.
local held = {}
for index, entry in ipairs(ask[4].entries) do
    local there = find_entry(entry[1])
    held[index] = (not there or there == entry[2]) and 1 or 0
    if held[index] == 1 then
        keep_entries({entry})
    end
end
return held
