-- What every script begins with: the question as one msgpack blob, the moment it happens at, and batches of calls.
-- KEYS[1] is the tag of the partition; every key of the script begins with it, so that all are in one slot of a cluster.
local call, pack, unpack_all, unpack_some = redis.call, cmsgpack.pack, cmsgpack.unpack, cmsgpack.unpack_limit
local floor, max, min, cut, byte, type = math.floor, math.max, math.min, string.sub, string.byte, type
local base = KEYS[1] .. ':'
local ask = cmsgpack.unpack(ARGV[1])
local now, partitions, partition = ask[1], ask[2], ask[3]
if not now then -- the server's clock decides; only a test brings its own
    local time = call('TIME')
    now = time[1] * 1000 + floor(time[2] / 1000)
end

-- A record is a packed list that begins with -1. Read like this, its table has the right size at once (a msgpack array
-- would grow it value by value), and the -1 comes from the reading itself: it says that everything was read.
local STACK = 7000 -- as many values as may be returned at once, with some to spare; each takes at least a byte
local function read_record(packed)
    if #packed <= STACK then
        return {unpack_some(packed, STACK, byte(packed) < 220 and 2 or 4)}
    end
    local kind = byte(packed)
    local record, size, at = {-1}, 1, kind < 220 and 2 or kind == 220 and 4 or 6
    while at >= 0 do
        local part = {unpack_some(packed, STACK, at)}
        at = part[1]
        for index = 2, #part do
            size = size + 1
            record[size] = part[index]
        end
    end
    return record
end

-- A table that makes what is asked of it, each once.
local function remembering(make)
    return setmetatable({}, {__index = function(known, key)
        local made = make(key)
        known[key] = made
        return made
    end})
end

-- What stands before a string of each length, in msgpack.
local heads = remembering(function(length)
    if length < 32 then
        return string.char(160 + length)
    elseif length < 256 then
        return string.char(217, length)
    elseif length < 65536 then
        return struct.pack('>BI2', 218, length)
    end
    return struct.pack('>BI4', 219, length)
end)

-- Numbers in msgpack.
local numerals = remembering(pack)

-- Numbers as text: Redis would print every one that it is given as a number.
local texts = remembering(function(number) return string.format('%.0f', number) end)
local function text(number)
    return texts[number]
end

-- One call with many values, in parts that Lua's stack can bear. All parts have an even number of values.
local AT_ONCE = 4000
local function many(command, key, values)
    local count = #values
    if count > 0 and count <= AT_ONCE then
        return call(command, key, unpack(values))
    end
    for from = 1, count, AT_ONCE do
        call(command, key, unpack(values, from, min(from + AT_ONCE - 1, count)))
    end
end

-- ZADD with options: a list that begins with two options, and then scores and members by turns.
local function add_scores(key, rows)
    local count = #rows
    if count <= AT_ONCE then
        return call('ZADD', key, unpack(rows))
    end
    for from = 3, count, AT_ONCE do
        call('ZADD', key, rows[1], rows[2], unpack(rows, from, min(from + AT_ONCE - 1, count)))
    end
end

local function fetch(key, fields)
    local count = #fields
    if count == 0 then
        return {}
    elseif count <= AT_ONCE then
        return call('HMGET', key, unpack(fields))
    end
    local found = {}
    for from = 1, count, AT_ONCE do
        for _, value in ipairs(call('HMGET', key, unpack(fields, from, min(from + AT_ONCE - 1, count)))) do
            found[#found + 1] = value
        end
    end
    return found
end
