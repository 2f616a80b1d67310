-- How pages ended that were not done: e:<run>:<bucket> by name, those of a job in one hash, e:<run>:j. Each says how, when,
-- why (0 = nothing is said), the URL where that is spelled otherwise than one asks (else false), and if it was brought by a
-- run that came from another store: then all partitions have it, because nobody knows which it belongs to. er:<run> has a number for each
-- reason, as long as there are not too many. They are written when a task's entry is thrown away.
local endings = (function() -- because Lua bears 200 local names at a time
local endings = {}
local MOST_REASONS = 1000

-- The site that a URL is of.
local function site_in(url)
    return string.match(string.match(url, '^%a+://([^/]*)') or '', '([^@]*)$')
end

-- The page that the body of a task is for, as one asks about it (nil = it is for something else), and the URL that it was
-- let in with: as `page_of` and `accepted_url` in `shoal.frontier.shared.endings`.
function endings.page_of(body)
    local row = unpack_all(body)
    local url, accepted = row[1], row[1]
    if row[4] then
        local readable, told = pcall(cjson.decode, row[4]) -- what is nested too deeply was not redirected
        if readable then
            if (told.kind or 'page') ~= 'page' or (told.method or 'GET') ~= 'GET' or type(told.body) == 'string' then
                return nil
            end
            if type(told.first_url) == 'string' and site_in(told.first_url) == site_in(url) then
                accepted = told.first_url
            end
        end
    end
    return (string.gsub(accepted, '^(%a+://)[^/]*@', '%1')), accepted
end

function endings.key(run, name)
    return base .. 'e:' .. run.number .. ':'
        .. (run.rules.job and 'j' or string.format('%03x', floor((byte(name) * 256 + byte(name, 2)) / 16)))
end

local function name_of(page)
    local digits = redis.sha1hex(page)
    return struct.pack('>I4I4', tonumber(cut(digits, 1, 8), 16), tonumber(cut(digits, 9, 16), 16))
end

-- A reason as it is kept: its number, or itself if there are too many.
local function kept(run, reason)
    local key = base .. 'er:' .. run.number
    local number = call('HGET', key, reason)
    if not number then
        number = call('HLEN', key) + 1
        if number > MOST_REASONS then
            return reason
        end
        call('HSET', key, reason, number)
    end
    return tonumber(number)
end

function endings.put(run, name, how, at, reason, url, brought)
    call('HSET', endings.key(run, name), name, pack(how, at, reason and kept(run, reason) or 0, url, brought or nil))
end

-- The task with this body ends.
function endings.remember(run, body, how, at, reason)
    local page, accepted = endings.page_of(body)
    if page then
        endings.put(run, name_of(page), how, at, reason, accepted ~= page and accepted)
    end
end

-- The same for an entry.
function endings.throw_away(run, entry, how, at, reason)
    endings.remember(run, cut(entry, unpack_some(entry, 6, 0) + 1), how, at, reason)
end

-- The same for an entry whose time is over, or that was counted out with the job it belongs to.
function endings.throw_away_late(run, entry, expires)
    local ended = run.emptied and tonumber(call('HGET', base .. 'r:' .. run.number, 'ended_at') or now)
    if not ended or (expires > 0 and expires <= ended) then
        endings.throw_away(run, entry, 'expired', expires)
    else
        endings.throw_away(run, entry, 'cancelled', ended)
    end
end

-- A page is let in again, by its two names one behind the other: how it ended before does not count any more.
function endings.begin_again(run, names)
    for at = 1, #names, 8 do
        local name = cut(names, at, at + 7)
        call('HDEL', endings.key(run, name), name)
    end
end

return endings
end)()
