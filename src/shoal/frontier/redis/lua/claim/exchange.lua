-- needs: prelude workers runs_and_lines endings sites rate_limits exit_health notes cache_entries site_queue delayed_tasks admit_tasks dead_letters settle grant choose_exit claim
-- Settle what is finished, then claim, in one step.
ask = ask[4]
math.randomseed(ask.seed)
local late = ask.settlements[1] and settle(ask.settlements) or {}
close_queues()
keep_notes(ask.notes)
greet(ask.worker)
local left, wake, head = claim(ask.scrapers, ask.lanes, ask.queues, ask.exits, ask.private, ask.want, ask.ahead)
close_queues()
close_expiry()
close_sites()
if known_exits.any then
    known_exits.close()
end
close_workers()
local quiet = write_counters()
local run_names, line_names = {}, {}
for number, run in pairs(runs) do
    if run then
        run_names[#run_names + 1] = {number, run.id}
    end
end
for number, line in pairs(lines) do
    line_names[#line_names + 1] = {number, line.scraper, line.lane}
end
granted[1] = '\154' .. pack(now, wake, left, late, run_names, line_names, quiet, outbox, head)
    .. struct.pack('>BI4', 221, granted_count)
return granted
