-- The cache: k:<key>. The server forgets an entry by itself; the moment inside it is the one that counts.
local function keep_entries(entries)
    for _, entry in ipairs(entries) do
        call('SET', base .. 'k:' .. entry[1], pack(now + entry[3]) .. entry[2], 'PX', max(1, entry[3]))
    end
end
