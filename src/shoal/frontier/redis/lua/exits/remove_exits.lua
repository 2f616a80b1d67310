-- needs: prelude
-- Forget exits and how well they do. Answers those that there were.
local found = {}
for _, name in ipairs(ask[4].names) do
    if call('HDEL', base .. 'ex', name) + call('HDEL', base .. 'eh', name) > 0 then
        found[#found + 1] = name
    end
end
return found
