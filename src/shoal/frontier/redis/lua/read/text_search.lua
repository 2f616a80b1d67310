-- Whether what is looked for occurs in a text, from some place on; whoever asks has a closer look.
local function mentions(text, from)
    for _, needle in ipairs(ask[4].needles) do
        if string.find(text, needle, from, true) then
            return true
        end
    end
    return false
end
