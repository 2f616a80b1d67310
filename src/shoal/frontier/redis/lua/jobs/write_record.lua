-- needs: prelude
-- Keep a document of a kind by its name; replaces.
call('HSET', base .. 'rec:' .. ask[4].kind, ask[4].name, ask[4].body)
return true
