-- needs: prelude workers runs_and_lines sites rate_limits exit_health
-- Extend leases. Answers those that no longer live, by their places.
local question = ask[4]
local ids, lost, later, names, sites_of, exits_of = {}, {}, {}, {}, {}, {}
greet(question.worker)
for index, row in ipairs(question.leases) do
    ids[index] = row[1]
end
for index, lease in ipairs(fetch(base .. 'lease', ids)) do
    if lease and cut(lease, 1, 9) == question.leases[index][2] then
        local _, _, _, run, _, exit, name = unpack_some(lease, 6, 0)
        if run_of(run).state ~= 'cancelled' then
            sites_of[index], exits_of[index] = name, exit
            names[#names + 1] = name
        end
    end
end
load_sites(names)
for index, row in ipairs(question.leases) do
    local name = sites_of[index]
    if name then
        local site, exit = known_site(name), exits_of[index]
        local expires = now + rules_of(site).lease
        later[#later + 1] = text(expires)
        later[#later + 1] = row[1]
        if site[LIMITS] ~= 0 and limits.renew_probes(site, exit, row[2], expires) then
            changed_sites[name] = true
        end
        if known_exits.exist() then
            known_exits.renew(exit, row[2], expires)
        end
    else
        lost[#lost + 1] = index
    end
end
many('ZADD', base .. 'le', later)
close_sites()
if known_exits.any then
    known_exits.close()
end
return pack(lost)
