-- The cache: k:<key>. The server forgets an entry by itself; the moment inside it is the one that counts.

-- The value under a key; nil where there is none or its time is over.
local function find_entry(key)
    local stored = call('GET', base .. 'k:' .. key)
    if stored then
        local next_at, expires = unpack_some(stored, 1, 0)
        if expires > now then
            return next_at < 0 and '' or cut(stored, next_at + 1)
        end
    end
end

-- Forget those without time that are still what they were.
local function let_go(entries)
    for _, entry in ipairs(entries) do
        if entry[3] == 0 and find_entry(entry[1]) == entry[2] then
            call('DEL', base .. 'k:' .. entry[1])
        end
    end
end

local function keep_entries(entries)
    for _, entry in ipairs(entries) do
        if entry[3] > 0 then
            call('SET', base .. 'k:' .. entry[1], pack(now + entry[3]) .. entry[2], 'PX', entry[3])
        end
    end
    let_go(entries)
end
