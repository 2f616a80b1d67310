-- What is deleted when its time is over: results, workers that have gone, bans.

-- Results whose time is over, at most so many batches. A job still knows when that was. Answers how many items went, in how
-- many batches.
local function delete_results(most)
    local deleted, batches = 0, 0
    for _, number in ipairs(call('ZRANGEBYSCORE', base .. 'res', '-inf', now, 'LIMIT', 0, 100)) do
        local key = base .. 'it:' .. number
        local gone = call('LPOP', key, most - batches)
        if gone then
            for _, record in ipairs(gone) do
                local _, some = unpack_some(record, 1, 0)
                deleted = deleted + some
            end
            batches = batches + #gone
            call('HINCRBY', base .. 'r:' .. number, 'first_item', #gone)
        end
        if call('EXISTS', key) == 0 then
            call('ZREM', base .. 'res', number)
            local run = run_of(tonumber(number))
            if run and not run.rules.job then
                call('HDEL', base .. 'r:' .. number, 'results_until')
            end
        end
        if batches >= most then
            break
        end
    end
    return deleted, batches
end

local function forget_workers()
    for _, worker in ipairs(call('ZRANGEBYSCORE', base .. 'ws', '-inf', '(' .. (now - {{WORKER_KEPT}}), 'LIMIT', 0, 100)) do
        if tonumber(call('HGET', base .. 'wn', worker) or 0) <= 0 then
            local row = call('HGET', base .. 'wk', worker)
            call('ZREM', base .. 'ws', worker)
            call('HDEL', base .. 'wk', worker)
            call('HDEL', base .. 'wn', worker)
            if row then
                call('SREM', base .. 'wm:' .. cmsgpack.unpack(row)[2], worker)
            end
        end
    end
end

-- What is over of the lists of sites that exits may not visit.
local function forget_bans()
    for _, exit in ipairs(call('ZRANGEBYSCORE', base .. 'bx', '-inf', now, 'LIMIT', 0, 100)) do
        call('UNLINK', base .. 'b:' .. exit)
        call('ZREM', base .. 'bx', exit)
    end
end
