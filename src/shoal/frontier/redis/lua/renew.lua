-- needs: prelude greet books sites
-- Extend leases. Answers those that no longer live, by their places.
local question = ask[4]
local ids, lost, later, names, sites_of = {}, {}, {}, {}, {}
greet(question.worker)
for index, row in ipairs(question.leases) do
    ids[index] = row[1]
end
for index, lease in ipairs(fetch(base .. 'lease', ids)) do
    if lease and cut(lease, 1, 9) == question.leases[index][2] then
        local _, _, _, run, _, _, name = unpack_some(lease, 6, 0)
        if run_of(run).state ~= 'cancelled' then
            sites_of[index] = name
            names[#names + 1] = name
        end
    end
end
load_sites(names)
for index, row in ipairs(question.leases) do
    local name = sites_of[index]
    if name then
        later[#later + 1] = text(now + rules_of(sites[name]).lease)
        later[#later + 1] = row[1]
    else
        lost[#lost + 1] = index
    end
end
many('ZADD', base .. 'le', later)
return pack(lost)
