-- needs: prelude runs_and_lines sites site_queue delayed_tasks arriving_run
-- Waiting tasks of an arriving run take their places, nine values each: number, lane, site, priority, when its time comes,
-- expires_at, attempts, crashes, and what only the client reads. In a queue of its own, its lines are held; in a shared one,
-- they are. Answers how many.
local run = arriving()
if not run then
    return false
end
local rows, first, own, names = question.rows, first_task(run), run.rules.queue == run.id, {}
for at = 1, #rows, 9 do
    names[#names + 1] = rows[at + 2]
end
load_sites(names)
for at = 1, #rows, 9 do
    local line, name, priority, not_before = line_for(run, rows[at + 1]), rows[at + 2], rows[at + 3], rows[at + 4]
    local id, expires = (first + rows[at]) * partitions + partition, rows[at + 5]
    local entry = pack(id, priority, run.number, expires, rows[at + 6], rows[at + 7]) .. rows[at + 8]
    open_site(name, run.rules)
    watch_expiry(expires, id, run.number, line.number, name)
    if not_before > now then
        delay(line.number, name, run.number, id, entry, not_before)
    elseif own then
        place(line.number, name, id, priority, entry)
    else
        hold(line.number, name, run.number, id, entry)
    end
    move(run, line, 1, 0)
    count(run, 'waiting', 1)
end
close_queues()
close_expiry()
close_sites()
write_counters()
return #rows / 9
