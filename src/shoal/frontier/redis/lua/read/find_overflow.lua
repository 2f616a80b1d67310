-- needs: prelude text_search sites site_queue
-- Those of some tasks of an overflow that contain what is looked for.
local question, hits = ask[4], {}
local key = overflow_key(question.line, question.site, question.priority, question.sorted)
for _, entry in ipairs(call(question.sorted and 'ZRANGE' or 'LRANGE', key, question.from, question.last)) do
    if mentions(entry, 1) then
        hits[#hits + 1] = entry
    end
end
return hits
