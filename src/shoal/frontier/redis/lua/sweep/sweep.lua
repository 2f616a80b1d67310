-- needs: prelude workers runs_and_lines endings sites rate_limits idle_slots exit_health notes site_queue delayed_tasks dead_letters held_tasks lost_leases cancelled_runs contested_sites retention
-- One bounded sweep of a partition. `gone`: workers known to be dead, each with the leases it held and the tasks it had
-- in hand (nil = not known).
-- Answers what was done, the workers of the asking machine that hold leases, and the runs that have nothing left here.
local MOST, PARCELS_REMEMBERED = 2000, 60 * 60 * 1000
local question = ask[4]

-- Runs that were resumed while many of their tasks were held back: the rest of them.
local function thaw()
    local done = 0
    for _, number in ipairs(call('SRANDMEMBER', base .. 'thaw', 20)) do
        done = done + release(run_of(tonumber(number)), MOST)
    end
    return done
end

local found, hands, lost_count = find_lost(question.gone, MOST)
local lost = bring_back(found, question.gone, hands, question.reason)
local expired = end_expired(MOST)
local cancelled = end_cancelled(MOST)
local deleted, batches = delete_results(MOST)
local thawed = thaw()
local forgotten = end_notes(MOST)
local relaxed = relax_sites()
forget_bans()
forget_slots()
forget_workers()
call('ZREMRANGEBYSCORE', base .. 'in', '-inf', now - PARCELS_REMEMBERED)
local holders = {}
for _, worker in ipairs(call('SMEMBERS', base .. 'wm:' .. question.machine)) do
    if tonumber(call('HGET', base .. 'wn', worker) or 0) > 0 then
        local row = call('HGET', base .. 'wk', worker)
        holders[#holders + 1] = row and cmsgpack.unpack(row) or nil
    end
end
close_queues()
close_expiry()
close_sites()
if known_exits.any then
    known_exits.close()
end
close_workers()
local quiet = write_counters()
local more = lost_count >= MOST or expired >= MOST or cancelled >= MOST or batches >= MOST or thawed >= MOST
    or forgotten >= MOST or relaxed
return '\152' .. pack(lost.returned, lost.buried, expired, cancelled + lost.refused, deleted, more, holders, quiet)
