-- needs: prelude runs_and_lines sites rate_limits arriving_run
-- The clocks that an arriving run brings; they only ever go forward. Each as `pack_sites` answers it. Answers how many.
local run = arriving()
if not run then
    return false
end
local names = {}
for index, row in ipairs(question.rows) do
    names[index] = row[1]
end
load_sites(names)
for _, row in ipairs(question.rows) do
    local site = site_of(row[1])
    limits.set_pace(site, max(limits.crawl_delay_of(site), row[2]), -1)
    for _, slot in ipairs(row[3]) do
        local at = slot_of(site, slot[1])
        site[at + S_BEGUN], site[at + S_BEFORE] = max(site[at + S_BEGUN], slot[2]), max(site[at + S_BEFORE], slot[2])
        site[at + S_BLOCKED] = max(site[at + S_BLOCKED], slot[3])
        if slot[4] > 0 then
            limits.bring(site, slot[1], slot[3])
        end
        site[at + S_PENALTY], site[at + S_USED] = max(site[at + S_PENALTY], slot[4]), max(site[at + S_USED], slot[5])
    end
end
close_sites()
return #question.rows
