-- needs: prelude greet books sites
-- Extend leases. Answers the tokens that no longer live.
local question = ask[4]
local ids, lost, later, names = {}, {}, {}, {}
greet(question.worker)
for index, row in ipairs(question.leases) do
    ids[index] = row[1]
end
local leases = fetch(base .. 'lease', ids)
for index, lease in ipairs(leases) do
    if lease then
        leases[index] = {unpack_all(lease)}
        names[#names + 1] = leases[index][5]
    end
end
load_sites(names)
for index, row in ipairs(question.leases) do
    local lease = leases[index]
    if lease and lease[1] == row[2] and run_of(lease[3]).state ~= 'cancelled' then
        later[#later + 1] = now + sites[lease[5]][LEASE]
        later[#later + 1] = row[1]
    else
        lost[#lost + 1] = row[2]
    end
end
many('ZADD', base .. 'le', later)
return pack(lost)
