-- needs: prelude exit_health
-- Add exits to the book, or change them: each as name, what the book says, and its cap here. What is out is counted.
local counts = {}
for _, row in ipairs(ask[4].exits) do
    if row[3] > 0 then
        for _, lease in ipairs(call('HVALS', base .. 'lease')) do
            local _, _, _, _, _, exit = unpack_some(lease, 5, 0)
            counts[exit] = (counts[exit] or 0) + 1
        end
        break
    end
end
for _, row in ipairs(ask[4].exits) do
    call('HSET', base .. 'ex', row[1], row[2])
    known_exits.set_cap(row[1], row[3], counts[row[1]] or 0)
end
known_exits.close()
