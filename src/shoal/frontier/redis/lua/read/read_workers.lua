-- needs: prelude
-- Workers that hold leases or were seen lately: what they are, when they were seen, how many leases they hold, and how long
-- ago they were seen.
local found = {}
for _, worker in ipairs(call('ZRANGE', base .. 'ws', 0, -1)) do
    local seen = tonumber(call('ZSCORE', base .. 'ws', worker))
    local leases = tonumber(call('HGET', base .. 'wn', worker) or 0)
    if leases > 0 or seen > now - {{WORKER_KEPT}} then
        found[#found + 1] = {call('HGET', base .. 'wk', worker), seen, leases, now - seen}
    end
end
return found
