-- Bring back tasks that were held while their run was paused, at most so many. Answers how many.
local function release(run, most)
    local key = base .. 'h:' .. run.number
    local ids = run.state == 'paused' and {} or call('SRANDMEMBER', key, most)
    for _, id in ipairs(ids) do
        local _, _, line, name, entry = unpack_some(call('HGET', base .. 'aside', id), 4, 0)
        local _, number, priority = unpack_some(entry, 2, 0)
        place(line, name, number, priority, entry)
        local site = site_of(name)
        site[ASIDE] = site[ASIDE] - 1
    end
    many('HDEL', base .. 'aside', ids)
    many('SREM', key, ids)
    if call('EXISTS', key) == 0 or run.state == 'paused' then
        call('SREM', base .. 'thaw', run.number)
    end
    return #ids
end
