-- Notes: n:<stream> is a stream of Redis' own, whose ids are numbers of this partition. nx: those that do not stay, by
-- the end of their time, as the first and the last number of what came together, and the stream.
local function keep_notes(notes)
    if not notes[1] then
        return
    end
    local number = call('HINCRBY', base .. 'meta', 'note', #notes) - #notes
    local ending = {}
    for _, note in ipairs(notes) do
        number = number + 1
        local stream, body, ttl = note[1], note[2], note[3]
        call('XADD', base .. 'n:' .. stream, text(number) .. '-0', 'b', body)
        local alike = ending[stream]
        if alike and (alike.ttl ~= ttl or alike.last ~= number - 1) then
            call('ZADD', base .. 'nx', now + alike.ttl, alike.first .. ':' .. alike.last .. ':' .. stream)
            alike, ending[stream] = nil, nil
        end
        if alike then
            alike.last = number
        elseif ttl >= 0 then
            ending[stream] = {ttl = ttl, first = number, last = number}
        end
    end
    for stream, alike in pairs(ending) do
        call('ZADD', base .. 'nx', now + alike.ttl, alike.first .. ':' .. alike.last .. ':' .. stream)
    end
end

-- Forget notes whose time is over, about so many. Answers how many.
local function end_notes(most)
    local done = 0
    for _, member in ipairs(call('ZRANGEBYSCORE', base .. 'nx', '-inf', now, 'LIMIT', 0, most)) do
        local first, last, stream = string.match(member, '^(%d+):(%d+):(.*)$')
        local key, ids = base .. 'n:' .. stream, {}
        for number = tonumber(first), tonumber(last) do
            ids[#ids + 1] = text(number) .. '-0'
        end
        many('XDEL', key, ids)
        if call('XLEN', key) == 0 then
            call('DEL', key)
        end
        call('ZREM', base .. 'nx', member)
        done = done + #ids
        if done >= most then
            break
        end
    end
    return done
end
