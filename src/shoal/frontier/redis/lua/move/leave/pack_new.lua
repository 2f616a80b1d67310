-- needs: prelude sites
-- Ready tasks that are packed with new sites of a line, and where to look on; 0 = that was all. From the end of the list, so
-- that those who visit its beginning do not disturb. Each: site, the entry in a list, and no overflows.
local AT_ONCE = 500
local question, names, found = ask[4], {}, {}
local passed = tonumber(question.cursor)
local new = call('LRANGE', base .. 'f:' .. question.line, -passed - AT_ONCE, -passed - 1)
for index, name in ipairs(new) do
    names[index] = cut(name, 7)
end
load_sites(names)
for _, name in ipairs(names) do
    local site = known_site(name)
    local packed = site and site[LINES]
    if type(packed) == 'string' then
        local entry_at, line = unpack_some(packed, 2, 0)
        if line == question.line then
            found[#found + 1] = {name, {cut(packed, entry_at + 1)}, {}}
        end
    end
end
return {#new == AT_ONCE and text(passed + AT_ONCE) or '0', found}
